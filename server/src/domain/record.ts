import type { OnLeaseExpiry } from "./policy.ts";

/** Names one record. */
export interface RecordId {
  readonly tenantId: number;
  readonly namespace: string;
  readonly key: string;
}

/** The outcome of an operation, replayed byte for byte. */
export interface Result {
  readonly kind: "success" | "failure";
  readonly payload: Uint8Array;
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** How far a holder came, for the next claimant. */
export interface Checkpoint {
  readonly name: string;
  readonly state: Uint8Array;
}

/**
 * Where a record stands at one moment of the database's clock. Nothing but timestamps tells `inProgress` from `lapsed`
 * and `ambiguous`; no sweep has to come by first.
 */
export type Phase =
  /** A claim is held, and its lease runs. */
  | { readonly kind: "inProgress" }
  /** The lease ran out under RECLAIM: the next Claim gets it, but its holder may still complete. */
  | { readonly kind: "lapsed" }
  /** The lease ran out under HOLD: nobody gets it unasked, but its holder may still complete. */
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
 * A record that retention has not ended, as seen at one moment. Instants are milliseconds since the Unix epoch on the
 * database's clock, with microseconds as the fraction.
 */
export interface LiveRecord {
  readonly id: RecordId;
  readonly phase: Phase;
  /** Names the newest claim. */
  readonly fencingToken: bigint;
  readonly attempt: number;
  readonly claimId: string;
  readonly owner: string;
  readonly fingerprint: Uint8Array | undefined;
  readonly firstClaimedAtMs: number;
  readonly claimedAtMs: number;
  readonly leaseExpiresAtMs: number;
  /** What of the lease was left when the database answered; negative once it ran out. */
  readonly leaseRemainingMs: number;
  readonly expiresAtMs: number;
  readonly checkpoint: Checkpoint | undefined;
}

/** What the database's clock showed when it answered the record. */
export function answeredAtMs({ leaseExpiresAtMs, leaseRemainingMs }: LiveRecord): number {
  return leaseExpiresAtMs - leaseRemainingMs;
}

/** What of a completed record answers a claim that comes again: as much of it as copies hold. */
export interface CachedCompletion {
  readonly fingerprint: Uint8Array | undefined;
  readonly firstClaimedAtMs: number;
  readonly completedAtMs: number;
  readonly resultExpiresAtMs: number;
  readonly expiresAtMs: number;
  readonly result: Result;
}

/** Undefined unless the record is completed and has its result. */
export function cachedCompletionOf(record: LiveRecord): CachedCompletion | undefined {
  const { phase, fingerprint, firstClaimedAtMs, expiresAtMs } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return undefined;
  const { completedAtMs, resultExpiresAtMs, result } = phase;
  return { fingerprint, firstClaimedAtMs, completedAtMs, resultExpiresAtMs, expiresAtMs, result };
}

/** The phase of an unfinished record. */
export function unfinishedPhase(leaseRuns: boolean, onLeaseExpiry: OnLeaseExpiry): Phase {
  if (leaseRuns) return { kind: "inProgress" };
  return { kind: onLeaseExpiry === "HOLD" ? "ambiguous" : "lapsed" };
}

/**
 * A record's name as one string, for maps. The namespace is length-prefixed, so that no two names share a string
 * whatever characters they hold.
 */
export function recordName(id: RecordId): string {
  return `${id.tenantId}:${id.namespace.length}:${id.namespace}${id.key}`;
}
