import { Refusal } from "../domain/refusal.ts";

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
  /** As `encodeMetadata` returns it: decoded only for a reply that contains it. Empty: there is none. */
  readonly metadataJson: string;
}

/** The result of a claim that completes its record itself. It is not stored. */
export const EMPTY_RESULT: Result = {
  kind: "success",
  payload: new Uint8Array(0),
  contentType: "",
  metadataJson: "",
};

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
   * The lease has run out under RECLAIM, within its time, or before the effect began: the next Claim takes over, but until then
   * the holder may still complete.
   */
  | { readonly kind: "lapsed" }
  /**
   * The lease has run out under HOLD, or too long after the record's first claim: only a Claim that accepts ambiguity
   * takes over, but the holder may still complete.
   */
  | { readonly kind: "ambiguous"; readonly sinceMs: number }
  | { readonly kind: "released"; readonly releasedAtMs: number; readonly reason: string }
  | {
      readonly kind: "completed";
      readonly completedAtMs: number;
      /** Undefined once the result's retention has ended. */
      readonly result: Result | undefined;
      /** Empty: the claim completed the record itself, with EMPTY_RESULT. */
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
  /** The claim that the newest one took over after its lease, so that its effect is unknown. Unset: it took over no claim. */
  readonly unknown?: { readonly owner: string; readonly leaseExpiredAtMs: number } | undefined;
  /** Whether the newest claim that was granted accepted ambiguity: to find that effect out. Unset: it did not. */
  readonly acceptedAmbiguous?: boolean;
  /** The claim that was given back, if the newest one is that which it had taken over. */
  readonly givenBack?: { readonly fencingToken: bigint } | undefined;
  readonly expiresAtMs: number;
  readonly checkpoint: Checkpoint | undefined;
  /** Set by the claim that replaced the key's ended record: when that one was first claimed. */
  readonly endedFirstClaimedAtMs?: number | undefined;
}

/** Returns the time at which the database answered, on its own clock. */
export function answeredAtMs({ leaseExpiresAtMs, leaseRemainingMs }: LiveRecord): number {
  return leaseExpiresAtMs - leaseRemainingMs;
}

/** The part of a completed record that answers a repeated claim: the part that caches keep. */
export interface CachedCompletion {
  readonly fingerprint: Uint8Array | undefined;
  /** As `completedBy`. */
  readonly claimId: string;
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
  const claimId = completedBy(record);
  return { fingerprint, claimId, firstClaimedAtMs, completedAtMs, resultExpiresAtMs, expiresAtMs, result };
}

/** Returns the id of the claim that completed a record itself; empty: it had none, or the record was completed otherwise. */
function completedBy({ phase, claimId }: LiveRecord): string {
  return phase.kind === "completed" && phase.resultDigest.byteLength === 0 ? claimId : "";
}

/**
 * Returns the phase of an unfinished record at `nowMs`. An expired lease is held from `heldFromMs` on, by `reclaimNowMs`; infinity:
 * never.
 */
export function unfinishedPhase(
  { leaseExpiresAtMs, heldFromMs }: { readonly leaseExpiresAtMs: number; readonly heldFromMs: number },
  nowMs: number,
  reclaimNowMs = nowMs,
): Phase {
  if (leaseExpiresAtMs > nowMs) return { kind: "inProgress" };
  if (heldFromMs > reclaimNowMs) return { kind: "lapsed" };
  return { kind: "ambiguous", sinceMs: Math.max(leaseExpiresAtMs, heldFromMs) };
}

/**
 * Returns a record's id as one string, for maps. The namespace is length-prefixed, so that no two ids share a
 * string, with any characters.
 */
export function recordName(id: RecordId): string {
  return `${id.tenantId}:${id.namespace.length}:${id.namespace}${id.key}`;
}

/**
 * Returns the time a whole number of milliseconds after another one, exact to the microsecond as Postgres
 * computes it. The sum is computed in whole microseconds, because the rounding error of a sum of milliseconds
 * could reach one microsecond.
 */
export function addMs(instantMs: number, byMs: number): number {
  const seconds = Math.floor(instantMs / 1000);
  const micros = Math.round((instantMs - seconds * 1000) * 1000);
  return (seconds * 1_000_000 + micros + byMs * 1000) / 1000;
}

/** A Claim as its request and policy decide it: the values that are stored in the row. */
export interface ClaimCommand {
  readonly id: RecordId;
  readonly fingerprint: Uint8Array | undefined;
  /** Empty: no claim id. */
  readonly claimId: string;
  readonly owner: string;
  readonly acceptAmbiguous: boolean;
  /** Whether the caller marks when its effect begins. */
  readonly marksBegin: boolean;
  /** 0: the claim completes its record itself, and never holds it (`completesItself`). */
  readonly leaseMs: number;
  /** How long after the record's first claim its expired lease is taken over. 0: never (HOLD); undefined: always. */
  readonly reclaimWithinS: number | undefined;
  readonly keyRetentionS: number;
  readonly resultRetentionS: number;
  readonly failureRetentionS: number;
  /** The key retention of the policy, which the request may have shortened. Counted, and not stored. */
  readonly retentionInForceS: number;
  /** When the key was created, in milliseconds since the Unix epoch; undefined: unknown. */
  readonly keyCreatedAtMs: number | undefined;
  /** Latest time at which the claim may create a new record, in milliseconds since the Unix epoch; undefined: no limit. */
  readonly acceptedUntilMs: number | undefined;
  /** How long it may wait for a record that is in progress. Not stored. */
  readonly waitMs: number;
}

/** Returns whether a claim completes its record in its own statement. */
export function completesItself({ leaseMs }: Pick<ClaimCommand, "leaseMs">): boolean {
  return leaseMs === 0;
}

/** What the answers to granted claims have in common. */
interface Begun {
  /** Whether it was granted before, to the same claim id. */
  readonly repeated: boolean;
  readonly attempt: number;
  /** When the key's earlier record was first claimed, which had ended and was not swept yet; undefined: there was none. */
  readonly endedFirstClaimedAtMs?: number | undefined;
}

/** The answer to a Claim. */
export type ClaimOutcome = {
  readonly expiresAtMs: number;
  readonly firstClaimedAtMs: number;
  /** The time at which the database answered, on its own clock; undefined: a cache answered. */
  readonly answeredAtMs: number | undefined;
} & (
  | ({ readonly kind: "claimed" } & Begun &
      Pick<LiveRecord, "fencingToken" | "leaseExpiresAtMs" | "leaseRemainingMs" | "checkpoint" | "unknown">)
  | ({
      /** The claim completed the record itself. */
      readonly kind: "recorded";
      readonly completedAtMs: number;
      /** As of `completed`. */
      readonly record: LiveRecord | undefined;
    } & Begun)
  | {
      readonly kind: "inProgress";
      readonly owner: string;
      readonly attempt: number;
      readonly leaseExpiresAtMs: number;
      readonly leaseRemainingMs: number;
    }
  | {
      readonly kind: "completed";
      readonly completedAtMs: number;
      readonly result: Result | undefined;
      /** The record that answered, for caches; undefined: a cached copy answered. */
      readonly record: LiveRecord | undefined;
    }
  | {
      readonly kind: "ambiguous";
      readonly owner: string;
      readonly attempt: number;
      readonly leaseExpiredAtMs: number;
      readonly checkpoint: Checkpoint | undefined;
    }
);

/** Whether a claim began the key's operation: it was granted now, as the first attempt. */
export function beginsOperation(outcome: ClaimOutcome): boolean {
  const isGranted = outcome.kind === "claimed" || outcome.kind === "recorded";
  return isGranted && !outcome.repeated && outcome.attempt === 1;
}

/**
 * The record could have been written as it was read, so another caller wrote it in between: the operation is
 * retried.
 */
export interface Contended {
  readonly kind: "contended";
}

/** Returns the answer to the claim that holds a record, or has completed it: granted now or, if `repeated`, before. */
export function claimed(record: LiveRecord, repeated: boolean): ClaimOutcome {
  const granted = {
    repeated,
    endedFirstClaimedAtMs: record.endedFirstClaimedAtMs,
    attempt: record.attempt,
    firstClaimedAtMs: record.firstClaimedAtMs,
    expiresAtMs: record.expiresAtMs,
    answeredAtMs: answeredAtMs(record),
  };
  if (record.phase.kind === "completed")
    return { kind: "recorded", completedAtMs: record.phase.completedAtMs, record, ...granted };
  return {
    kind: "claimed",
    fencingToken: record.fencingToken,
    leaseExpiresAtMs: record.leaseExpiresAtMs,
    leaseRemainingMs: record.leaseRemainingMs,
    checkpoint: record.checkpoint,
    unknown: record.unknown,
    ...granted,
  };
}

/** Whether it was this claim, whose reply was lost, that completed the record. `byClaim`: as `completedBy`. */
function completedBefore(byClaim: string, command: ClaimCommand): boolean {
  return byClaim !== "" && byClaim === command.claimId && completesItself(command);
}

/**
 * Returns the answer to a claim that was not granted, from the record that the key has.
 *
 * @param decidedAtMs the database's clock when it was not granted; unset for a claim without `acceptedUntilMs`.
 * @throws Refusal FINGERPRINT_MISMATCH, in every phase of the record; KEY_TOO_OLD if there is no record.
 */
export function answerClaim(
  record: LiveRecord | undefined,
  command: ClaimCommand,
  decidedAtMs = Number.NEGATIVE_INFINITY,
): ClaimOutcome | Contended {
  if (record === undefined) {
    if (decidedAtMs >= (command.acceptedUntilMs ?? Number.POSITIVE_INFINITY)) throw keyTooOld(command);
    return { kind: "contended" };
  }
  refuseMismatch(record.fingerprint, command.fingerprint);
  const { phase, owner, attempt, leaseExpiresAtMs, leaseRemainingMs, checkpoint } = record;
  const moments = {
    firstClaimedAtMs: record.firstClaimedAtMs,
    expiresAtMs: record.expiresAtMs,
    answeredAtMs: answeredAtMs(record),
  };
  switch (phase.kind) {
    case "completed":
      if (completedBefore(completedBy(record), command)) return claimed(record, true);
      return {
        kind: "completed",
        completedAtMs: phase.completedAtMs,
        result: phase.result,
        record,
        ...moments,
      };
    case "inProgress":
      // The caller's own claim, whose reply was lost.
      if (command.claimId !== "" && command.claimId === record.claimId) return claimed(record, true);
      return {
        kind: "inProgress",
        owner,
        attempt,
        leaseExpiresAtMs,
        leaseRemainingMs,
        ...moments,
      };
    case "ambiguous":
      if (command.acceptAmbiguous) return { kind: "contended" };
      return {
        kind: "ambiguous",
        owner,
        attempt,
        leaseExpiredAtMs: leaseExpiresAtMs,
        checkpoint,
        ...moments,
      };
    case "lapsed":
    case "released":
      return { kind: "contended" };
  }
}

/**
 * Returns the answer to a claim from a cached copy of the completed record: the same as `answerClaim` from
 * the record.
 *
 * @throws Refusal FINGERPRINT_MISMATCH.
 */
export function answerFromCompletion(copy: CachedCompletion, command: ClaimCommand): ClaimOutcome {
  refuseMismatch(copy.fingerprint, command.fingerprint);
  const { completedAtMs, result, firstClaimedAtMs, expiresAtMs } = copy;
  const answer = {
    completedAtMs,
    record: undefined,
    firstClaimedAtMs,
    expiresAtMs,
    answeredAtMs: undefined,
  };
  // The attempt of a repeat is only counted, and a copy does not have it.
  if (completedBefore(copy.claimId, command))
    return { kind: "recorded", repeated: true, attempt: 1, ...answer };
  return { kind: "completed", result, ...answer };
}

/** A mismatch needs two fingerprints: a claim without one neither binds a key nor conflicts with it. */
function refuseMismatch(bound: Uint8Array | undefined, sent: Uint8Array | undefined): void {
  if (bound === undefined || sent === undefined || Buffer.compare(bound, sent) === 0) return;
  throw new Refusal("FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs.");
}

function keyTooOld({ keyCreatedAtMs, acceptedUntilMs }: ClaimCommand): Refusal {
  if (keyCreatedAtMs === undefined || acceptedUntilMs === undefined) throw new Error("the key has no time");
  return new Refusal(
    "KEY_TOO_OLD",
    // `claimAfterLoss` accepts such a key until its own creation only.
    `The key is older than ${acceptedUntilMs > keyCreatedAtMs ? "its retention" : "a loss of records"} and has no record: ` +
      "its operation may have happened and been forgotten. " +
      "Find out whether it happened; if it did not, repeat it under a new key.",
    {
      metadata: {
        key_created_at: new Date(keyCreatedAtMs).toISOString(),
        accepted_until: new Date(acceptedUntilMs).toISOString(),
      },
    },
  );
}
