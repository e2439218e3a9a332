import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { ClaimOutcome } from "../domain/claim.ts";
import type { Checkpoint, LiveRecord, Phase, Result } from "../domain/record.ts";
import type { Completion, LeaseExtension, Release } from "../domain/settlement.ts";
import {
  type ClaimResponse,
  ClaimResponseSchema,
  type CompleteResponse,
  CompleteResponseSchema,
  type ExtendLeaseResponse,
  ExtendLeaseResponseSchema,
  type LookupResponse,
  LookupResponseSchema,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import {
  type Checkpoint as CheckpointMessage,
  CheckpointSchema,
  Record_State,
  Result_Kind,
  type Result as ResultMessage,
  ResultSchema,
} from "../gen/onceward/v1/record_pb.ts";

/** Asking again more often than this is of no use to anybody. */
const MAX_RETRY_AFTER_MS = 1000;
const MIN_RETRY_AFTER_MS = 10;

/** What a Claim is answered with. */
export function claimResponse(outcome: ClaimOutcome): ClaimResponse {
  return create(ClaimResponseSchema, {
    outcome: claimOutcome(outcome),
    expiresAt: timestamp(outcome.expiresAtMs),
  });
}

function claimOutcome(outcome: ClaimOutcome) {
  switch (outcome.kind) {
    case "claimed": {
      const { fencingToken, attempt, checkpoint } = outcome;
      const value = {
        fencingToken,
        attempt,
        leaseExpiresAt: timestamp(outcome.leaseExpiresAtMs),
        leaseRemaining: duration(outcome.leaseRemainingMs),
        firstClaimedAt: timestamp(outcome.firstClaimedAtMs),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      };
      return { case: "claimed" as const, value };
    }
    case "inProgress": {
      const { owner, attempt, leaseExpiresAtMs, leaseRemainingMs } = outcome;
      const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, leaseRemainingMs));
      const value = {
        owner,
        attempt,
        leaseExpiresAt: timestamp(leaseExpiresAtMs),
        retryAfter: duration(retryAfterMs),
      };
      return { case: "inProgress" as const, value };
    }
    case "completed": {
      const { result } = outcome;
      const value = {
        completedAt: timestamp(outcome.completedAtMs),
        resultExpired: result === undefined,
        ...(result && { result: resultMessage(result) }),
      };
      return { case: "completed" as const, value };
    }
    case "ambiguous": {
      const { owner, attempt, checkpoint } = outcome;
      const value = {
        owner,
        attempt,
        leaseExpiredAt: timestamp(outcome.leaseExpiredAtMs),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      };
      return { case: "ambiguous" as const, value };
    }
  }
}

/** What a Complete is answered with. */
export function completeResponse({
  completedAtMs,
  expiresAtMs,
  alreadyCompleted,
}: Completion): CompleteResponse {
  return create(CompleteResponseSchema, {
    completedAt: timestamp(completedAtMs),
    expiresAt: timestamp(expiresAtMs),
    alreadyCompleted,
  });
}

/** What a Release is answered with. */
export function releaseResponse({ expiresAtMs }: Release): ReleaseResponse {
  return create(ReleaseResponseSchema, { expiresAt: timestamp(expiresAtMs) });
}

/** What an ExtendLease is answered with. */
export function extendLeaseResponse(extension: LeaseExtension): ExtendLeaseResponse {
  return create(ExtendLeaseResponseSchema, {
    leaseExpiresAt: timestamp(extension.leaseExpiresAtMs),
    leaseRemaining: duration(extension.leaseRemainingMs),
    expiresAt: timestamp(extension.expiresAtMs),
  });
}

/** What a Lookup is answered with. */
export function lookupResponse(record: LiveRecord | undefined): LookupResponse {
  if (record === undefined) return create(LookupResponseSchema);
  const { id, fencingToken, attempt, owner, fingerprint, checkpoint } = record;
  return create(LookupResponseSchema, {
    record: {
      namespace: id.namespace,
      key: id.key,
      fencingToken,
      attempt,
      owner,
      ...(fingerprint && { fingerprint }),
      ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      firstClaimedAt: timestamp(record.firstClaimedAtMs),
      claimedAt: timestamp(record.claimedAtMs),
      leaseExpiresAt: timestamp(record.leaseExpiresAtMs),
      expiresAt: timestamp(record.expiresAtMs),
      ...phaseFields(record.phase),
    },
  });
}

function phaseFields(phase: Phase) {
  switch (phase.kind) {
    case "inProgress":
    case "lapsed":
      return { state: Record_State.IN_PROGRESS };
    case "ambiguous":
      return { state: Record_State.AMBIGUOUS };
    case "released":
      return {
        state: Record_State.RELEASED,
        releasedAt: timestamp(phase.releasedAtMs),
        releaseReason: phase.reason,
      };
    case "completed":
      return {
        state: Record_State.COMPLETED,
        completedAt: timestamp(phase.completedAtMs),
        resultExpiresAt: timestamp(phase.resultExpiresAtMs),
        resultExpired: phase.result === undefined,
        ...(phase.result && { result: resultMessage(phase.result) }),
      };
  }
}

function resultMessage({ kind, payload, contentType, metadata }: Result): ResultMessage {
  return create(ResultSchema, {
    kind: kind === "failure" ? Result_Kind.FAILURE : Result_Kind.SUCCESS,
    payload,
    contentType,
    metadata,
  });
}

function checkpointMessage({ name, state }: Checkpoint): CheckpointMessage {
  return create(CheckpointSchema, { name, state });
}

/** From milliseconds since the epoch, to the microsecond. */
function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.round((ms - seconds * 1000) * 1000);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.min(micros, 999_999) * 1000 });
}

function duration(ms: number): Duration {
  const wholeMs = Math.max(0, Math.floor(ms));
  const seconds = Math.floor(wholeMs / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: (wholeMs - seconds * 1000) * 1_000_000 });
}
