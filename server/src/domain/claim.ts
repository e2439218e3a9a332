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

/** A Claim with everything that the policy and the request say, decided; what is stamped on the row. */
export interface ClaimCommand {
  readonly id: RecordId;
  readonly fingerprint: Uint8Array | undefined;
  /** Empty: none. */
  readonly claimId: string;
  readonly owner: string;
  readonly acceptAmbiguous: boolean;
  readonly leaseMs: number;
  readonly onLeaseExpiry: OnLeaseExpiry;
  readonly keyRetentionS: number;
  readonly resultRetentionS: number;
  readonly failureRetentionS: number;
}

/** What a Claim is answered with. */
export type ClaimOutcome = {
  readonly expiresAtMs: number;
  readonly firstClaimedAtMs: number;
  /** What the database's clock showed when it answered; undefined: it was not asked. */
  readonly answeredAtMs: number | undefined;
} & (
  | {
      readonly kind: "claimed";
      /** Granted before, to the same claim id. */
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
      /** What it was answered from, for whoever keeps copies; undefined: a copy. */
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

/** The record as seen could have been had, so somebody else had it meanwhile: look again. */
export interface Contended {
  readonly kind: "contended";
}

/** The answer to the claim that a record was granted to, now or, if it is a repeat, before. */
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
 * The answer to a claim that was not granted, from the record that stood in its way.
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
 * The answer to a claim from a copy of the completed record: what `answerClaim` answers from the record itself.
 *
 * @throws Refusal FINGERPRINT_MISMATCH.
 */
export function answerFromCopy(copy: CachedCompletion, command: ClaimCommand): ClaimOutcome {
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

/** A mismatch needs two fingerprints: a claim without one neither binds nor breaks a key. */
function refuseMismatch(bound: Uint8Array | undefined, brought: Uint8Array | undefined): void {
  if (bound === undefined || brought === undefined || Buffer.compare(bound, brought) === 0) return;
  throw new Refusal("FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs.");
}
