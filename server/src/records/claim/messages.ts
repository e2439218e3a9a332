import { databaseNowMs } from "../../core/calls/authority.ts";
import {
  FINGERPRINT_BYTES,
  MAX_CLAIM_ID_BYTES,
  MAX_KEY_AHEAD_MS,
  MAX_OWNER_BYTES,
  MAX_WAIT_MS,
} from "../../core/domain/limits.ts";
import type { Policy } from "../../core/domain/policy.ts";
import type { Principal } from "../../core/domain/tenant.ts";
import { duration, timestamp, type Violations } from "../../core/messages/violations.ts";
import type {
  Ambiguous,
  Claimed,
  ClaimRequest,
  ClaimResponse,
  Completed,
  InProgress,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { acceptedUntilMs, claimAfterLoss } from "../late-keys.ts";
import type { ClaimCommand, ClaimOutcome } from "../record.ts";
import { checkpointMessage, resultMessage } from "../record-messages.ts";
import { parseLeaseMs, parseRetentionS, readRecordId } from "../request.ts";
import { timeInKey } from "./key-time.ts";

/** A claim, and how long it may wait for a record that is in progress. */
export interface ParsedClaim {
  readonly command: ClaimCommand;
  readonly waitMs: number;
}

/** Parses a claim. @throws Refusal as every parser (request.ts). */
export function parseClaim(request: ClaimRequest, principal: Principal): ParsedClaim {
  const { id, tenant, policy, violations } = readRecordId(request, principal);
  const { fingerprint, claimId, owner, acceptAmbiguous } = request;
  if (fingerprint.byteLength !== 0 && fingerprint.byteLength !== FINGERPRINT_BYTES) {
    violations.add("fingerprint", `must be 0 or ${FINGERPRINT_BYTES} bytes, is ${fingerprint.byteLength}`);
  }
  if (policy.requireFingerprint && fingerprint.byteLength === 0) {
    violations.add("fingerprint", "is required by the namespace's policy");
  }
  violations.text("claim_id", claimId, { maxBytes: MAX_CLAIM_ID_BYTES });
  violations.text("owner", owner, { maxBytes: MAX_OWNER_BYTES });
  const leaseMs = parseLeaseMs(request, policy, violations);
  const retentionS = parseRetentionS(request, policy, violations);
  const waitMs = violations.durationMs("wait", request.wait, { minMs: 0, maxMs: MAX_WAIT_MS }) ?? 0;
  const keyCreatedAtMs = parseKeyTimeMs(request, policy, principal, violations);
  violations.throwIfAny();

  const { stamped } = policy;
  const isRefusedLate = policy.lateKeys !== "RUN";
  const keyRetentionS = (isRefusedLate ? undefined : retentionS) ?? stamped.keyRetentionS;
  const command = {
    id,
    fingerprint: fingerprint.byteLength === 0 ? undefined : fingerprint,
    claimId,
    owner,
    acceptAmbiguous,
    leaseMs: leaseMs ?? policy.defaultLeaseMs,
    onLeaseExpiry: policy.onLeaseExpiry,
    keyRetentionS,
    resultRetentionS: Math.min(stamped.resultRetentionS, keyRetentionS),
    failureRetentionS: Math.min(stamped.failureRetentionS, keyRetentionS),
    retentionInForceS: policy.keyRetentionS,
    keyCreatedAtMs,
    acceptedUntilMs:
      isRefusedLate && keyCreatedAtMs !== undefined ? acceptedUntilMs(keyCreatedAtMs, policy) : undefined,
  };
  const { recordsLostAtMs } = tenant;
  return {
    command: recordsLostAtMs === undefined ? command : claimAfterLoss(command, recordsLostAtMs),
    waitMs,
  };
}

/**
 * Returns when the key was created, in milliseconds since the Unix epoch: as the request says, or as the key does. Undefined:
 * unknown. A time counts only where late keys are refused, so only there it must be known or not be ahead.
 */
function parseKeyTimeMs(
  { key, keyCreatedAt }: ClaimRequest,
  { lateKeys }: Policy,
  principal: Principal,
  violations: Violations,
): number | undefined {
  const createdAtMs = violations.timestampMs("key_created_at", keyCreatedAt) ?? timeInKey(key);
  if (lateKeys === "RUN") return createdAtMs;
  if (createdAtMs === undefined) {
    if (lateKeys === "REQUIRE_TIME") {
      violations.add("key_created_at", "is required by the namespace's policy, as the key contains no time");
    }
  } else if (createdAtMs > databaseNowMs(principal) + MAX_KEY_AHEAD_MS) {
    const field = keyCreatedAt === undefined ? "key" : "key_created_at";
    violations.add(
      field,
      `must not be created more than ${MAX_KEY_AHEAD_MS / 1000} s after the server's time`,
    );
  }
  return createdAtMs;
}

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

/** Written without `create`, as the times are: every claim makes one of these messages. */
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
