import type { OnLeaseExpiry } from "./policy.ts";

/** Identifies one record. */
export interface RecordId {
  readonly tenantId: number;
  readonly namespace: string;
  readonly key: string;
}

/** The result of an operation, replayed byte for byte. */
export interface Result {
  readonly kind: "success" | "failure";
  readonly payload: Uint8Array;
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** How far a claim's holder has come, for the next one. */
export interface Checkpoint {
  readonly name: string;
  readonly state: Uint8Array;
}

/**
 * A record's phase at one time of the database's clock. Only timestamps distinguish `inProgress`, `lapsed`
 * and `ambiguous`: no sweep is needed between them.
 */
export type Phase =
  /** A claim is held, and its lease is running. */
  | { readonly kind: "inProgress" }
  /**
   * The lease has run out under RECLAIM: the next Claim takes over, but until then the holder may still
   * complete.
   */
  | { readonly kind: "lapsed" }
  /**
   * The lease has run out under HOLD: only a Claim that accepts ambiguity takes over, but the holder may
   * still complete.
   */
  | { readonly kind: "ambiguous" }
  | { readonly kind: "released"; readonly releasedAtMs: number; readonly reason: string }
  | {
      readonly kind: "completed";
      readonly completedAtMs: number;
      /** Undefined once the result's retention has ended. */
      readonly result: Result | undefined;
      readonly resultDigest: Uint8Array;
      readonly resultExpiresAtMs: number;
    };

/**
 * A record whose retention has not ended, as read at one time. Times are milliseconds since the Unix epoch on
 * the database's clock, with microseconds as the fraction.
 */
export interface LiveRecord {
  readonly id: RecordId;
  readonly phase: Phase;
  /** Identifies the newest claim. */
  readonly fencingToken: bigint;
  readonly attempt: number;
  readonly claimId: string;
  readonly owner: string;
  readonly fingerprint: Uint8Array | undefined;
  readonly firstClaimedAtMs: number;
  readonly claimedAtMs: number;
  readonly leaseExpiresAtMs: number;
  /** What was left of the lease when the database answered; negative after it ran out. */
  readonly leaseRemainingMs: number;
  readonly expiresAtMs: number;
  readonly checkpoint: Checkpoint | undefined;
}

/** Returns the time at which the database answered, on its own clock. */
export function answeredAtMs({ leaseExpiresAtMs, leaseRemainingMs }: LiveRecord): number {
  return leaseExpiresAtMs - leaseRemainingMs;
}

/** The part of a completed record that answers a repeated claim: the part that caches keep. */
export interface CachedCompletion {
  readonly fingerprint: Uint8Array | undefined;
  readonly firstClaimedAtMs: number;
  readonly completedAtMs: number;
  readonly resultExpiresAtMs: number;
  readonly expiresAtMs: number;
  readonly result: Result;
}

/** Returns the cached part of a record; undefined unless it is completed and has its result. */
export function cachedCompletionOf(record: LiveRecord): CachedCompletion | undefined {
  const { phase, fingerprint, firstClaimedAtMs, expiresAtMs } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return undefined;
  const { completedAtMs, resultExpiresAtMs, result } = phase;
  return { fingerprint, firstClaimedAtMs, completedAtMs, resultExpiresAtMs, expiresAtMs, result };
}

/** Returns the phase of an unfinished record. */
export function unfinishedPhase(leaseRuns: boolean, onLeaseExpiry: OnLeaseExpiry): Phase {
  if (leaseRuns) return { kind: "inProgress" };
  return { kind: onLeaseExpiry === "HOLD" ? "ambiguous" : "lapsed" };
}

/**
 * Returns a record's id as one string, for maps. The namespace is length-prefixed, so that no two ids share a
 * string, whatever characters they contain.
 */
export function recordName(id: RecordId): string {
  return `${id.tenantId}:${id.namespace.length}:${id.namespace}${id.key}`;
}

/**
 * Returns the time a whole number of milliseconds after another one, exact to the microsecond as Postgres
 * computes it. The sum is computed in whole microseconds, because the rounding error of a sum of milliseconds
 * could reach one microsecond.
 */
export function laterMs(instantMs: number, byMs: number): number {
  const seconds = Math.floor(instantMs / 1000);
  const micros = Math.round((instantMs - seconds * 1000) * 1000);
  return (seconds * 1_000_000 + micros + byMs * 1000) / 1000;
}
