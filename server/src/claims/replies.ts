import { create } from "@bufbuild/protobuf";
import type { ClaimOutcome } from "../domain/claim.ts";
import { answeredAtMs, type LiveRecord } from "../domain/record.ts";
import type { Completion, LeaseExtension, Release } from "../domain/settlement.ts";
import {
  type Ambiguous,
  type Claimed,
  type ClaimResponse,
  type Completed,
  type CompleteResponse,
  CompleteResponseSchema,
  type ExtendLeaseResponse,
  ExtendLeaseResponseSchema,
  type InProgress,
  type LookupResponse,
  LookupResponseSchema,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { checkpointMessage, recordMessage, resultMessage } from "../messages/record-messages.ts";
import { duration, timestamp } from "../messages/violations.ts";

/** A caller that retries once a second learns of a release soon enough. */
const MAX_RETRY_AFTER_MS = 1000;
const MIN_RETRY_AFTER_MS = 10;

/** Returns the response to a Claim; `reckonedMs` is the computed time of the database's clock, for outcomes without it. */
export function claimResponse(outcome: ClaimOutcome, reckonedMs: number): ClaimResponse {
  return {
    $typeName: "onceward.v1.ClaimResponse",
    outcome: claimOutcome(outcome),
    expiresAt: timestamp(outcome.expiresAtMs),
    serverTime: timestamp(outcome.answeredAtMs ?? reckonedMs),
  };
}

/** Written without `create`, for the reason given in `messages/wire-times.ts`. */
function claimOutcome(outcome: ClaimOutcome): ClaimResponse["outcome"] {
  switch (outcome.kind) {
    case "claimed": {
      const { fencingToken, attempt, checkpoint } = outcome;
      const value: Claimed = {
        $typeName: "onceward.v1.Claimed",
        fencingToken,
        attempt,
        leaseExpiresAt: timestamp(outcome.leaseExpiresAtMs),
        leaseRemaining: duration(outcome.leaseRemainingMs),
        firstClaimedAt: timestamp(outcome.firstClaimedAtMs),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      };
      return { case: "claimed", value };
    }
    case "inProgress": {
      const { owner, attempt, leaseExpiresAtMs, leaseRemainingMs } = outcome;
      const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, Math.min(MAX_RETRY_AFTER_MS, leaseRemainingMs));
      const value: InProgress = {
        $typeName: "onceward.v1.InProgress",
        owner,
        attempt,
        leaseExpiresAt: timestamp(leaseExpiresAtMs),
        retryAfter: duration(retryAfterMs),
      };
      return { case: "inProgress", value };
    }
    case "completed": {
      const { result } = outcome;
      const value: Completed = {
        $typeName: "onceward.v1.Completed",
        completedAt: timestamp(outcome.completedAtMs),
        resultExpired: result === undefined,
        ...(result && { result: resultMessage(result) }),
      };
      return { case: "completed", value };
    }
    case "ambiguous": {
      const { owner, attempt, checkpoint } = outcome;
      const value: Ambiguous = {
        $typeName: "onceward.v1.Ambiguous",
        owner,
        attempt,
        leaseExpiredAt: timestamp(outcome.leaseExpiredAtMs),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      };
      return { case: "ambiguous", value };
    }
  }
}

/** Returns the response to a Complete. */
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

/** Returns the response to a Release. */
export function releaseResponse({ expiresAtMs }: Release): ReleaseResponse {
  return create(ReleaseResponseSchema, { expiresAt: timestamp(expiresAtMs) });
}

/** Returns the response to an ExtendLease. */
export function extendLeaseResponse(extension: LeaseExtension): ExtendLeaseResponse {
  return create(ExtendLeaseResponseSchema, {
    leaseExpiresAt: timestamp(extension.leaseExpiresAtMs),
    leaseRemaining: duration(extension.leaseRemainingMs),
    expiresAt: timestamp(extension.expiresAtMs),
  });
}

/** Returns the response to a Lookup; `reckonedMs` is the computed time of the database's clock, for a missing record. */
export function lookupResponse(record: LiveRecord | undefined, reckonedMs: number): LookupResponse {
  return create(LookupResponseSchema, {
    ...(record && { record: recordMessage(record) }),
    serverTime: timestamp(record === undefined ? reckonedMs : answeredAtMs(record)),
  });
}
