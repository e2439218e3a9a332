import type { OnLeaseExpiry } from "./policy.ts";
import {
  answeredAtMs,
  type CachedCompletion,
  type Checkpoint,
  type LiveRecord,
  type RecordId,
  type Result,
} from "./record.ts";
import { Refusal } from "./refusal.ts";

/** A Claim as its request and policy decide it: the values that are stored in the row. */
export interface ClaimCommand {
  readonly id: RecordId;
  readonly fingerprint: Uint8Array | undefined;
  /** Empty: no claim id. */
  readonly claimId: string;
  readonly owner: string;
  readonly acceptAmbiguous: boolean;
  readonly leaseMs: number;
  readonly onLeaseExpiry: OnLeaseExpiry;
  readonly keyRetentionS: number;
  readonly resultRetentionS: number;
  readonly failureRetentionS: number;
}

/** The answer to a Claim. */
export type ClaimOutcome = {
  readonly expiresAtMs: number;
  readonly firstClaimedAtMs: number;
  /** The time at which the database answered, on its own clock; undefined: a cache answered. */
  readonly answeredAtMs: number | undefined;
} & (
  | {
      readonly kind: "claimed";
      /** Whether it was granted before, to the same claim id. */
      readonly repeated: boolean;
      readonly fencingToken: bigint;
      readonly leaseExpiresAtMs: number;
      readonly leaseRemainingMs: number;
      readonly attempt: number;
      readonly checkpoint: Checkpoint | undefined;
    }
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

/**
 * The record could have been written as it was read, so another caller wrote it in between: the operation is
 * retried.
 */
export interface Contended {
  readonly kind: "contended";
}

/** Returns the answer to the claim that holds a record: granted now or, if `repeated`, before. */
export function claimed(record: LiveRecord, repeated: boolean): ClaimOutcome {
  const {
    fencingToken,
    leaseExpiresAtMs,
    leaseRemainingMs,
    attempt,
    firstClaimedAtMs,
    checkpoint,
    expiresAtMs,
  } = record;
  return {
    kind: "claimed",
    repeated,
    fencingToken,
    leaseExpiresAtMs,
    leaseRemainingMs,
    attempt,
    firstClaimedAtMs,
    checkpoint,
    expiresAtMs,
    answeredAtMs: answeredAtMs(record),
  };
}

/**
 * Returns the answer to a claim that was not granted, from the record that the key has.
 *
 * @throws Refusal FINGERPRINT_MISMATCH, whatever the record's phase.
 */
export function answerClaim(record: LiveRecord | undefined, command: ClaimCommand): ClaimOutcome | Contended {
  if (record === undefined) return { kind: "contended" };
  refuseMismatch(record.fingerprint, command.fingerprint);
  const { phase, owner, attempt, leaseExpiresAtMs, leaseRemainingMs, checkpoint } = record;
  const moments = {
    firstClaimedAtMs: record.firstClaimedAtMs,
    expiresAtMs: record.expiresAtMs,
    answeredAtMs: answeredAtMs(record),
  };
  switch (phase.kind) {
    case "completed":
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
  return {
    kind: "completed",
    completedAtMs,
    result,
    record: undefined,
    firstClaimedAtMs,
    expiresAtMs,
    answeredAtMs: undefined,
  };
}

/** A mismatch needs two fingerprints: a claim without one neither binds a key nor conflicts with it. */
function refuseMismatch(bound: Uint8Array | undefined, sent: Uint8Array | undefined): void {
  if (bound === undefined || sent === undefined || Buffer.compare(bound, sent) === 0) return;
  throw new Refusal("FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs.");
}
