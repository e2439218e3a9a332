import {
  FINGERPRINT_BYTES,
  MAX_CLAIM_ID_BYTES,
  MAX_KEY_AHEAD_MS,
  MAX_OWNER_BYTES,
  MAX_WAIT_MS,
} from "../../domain/limits.ts";
import type { Policy } from "../../domain/policy.ts";
import { databaseNowMs, type Principal } from "../../domain/tenant.ts";
import { duration, timestamp, type Violations } from "../../domain/violations.ts";
import type {
  Ambiguous,
  Claimed,
  ClaimRequest,
  ClaimResponse,
  Completed,
  InProgress,
  Recorded,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { acceptedUntilMs, claimAfterLoss } from "../late-keys.ts";
import { type ClaimCommand, type ClaimOutcome, completesItself } from "../record.ts";
import { checkpointMessage, resultMessage } from "../record-messages.ts";
import { parseLeaseMs, parseRetentionS, readRecordId } from "../request.ts";

/** Parses a claim. @throws Refusal as every parser (request.ts). */
export function parseClaim(request: ClaimRequest, principal: Principal): ClaimCommand {
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
  const leaseMs = parseClaimedLeaseMs(request, policy, violations);
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
    marksBegin: request.marksBegin && !completesItself({ leaseMs }),
    leaseMs,
    reclaimWithinS: policy.onLeaseExpiry === "HOLD" ? 0 : policy.reclaimWithinS,
    keyRetentionS,
    ...resultRetentionsS(leaseMs, stamped, keyRetentionS),
    retentionInForceS: policy.keyRetentionS,
    keyCreatedAtMs,
    acceptedUntilMs:
      isRefusedLate && keyCreatedAtMs !== undefined ? acceptedUntilMs(keyCreatedAtMs, policy) : undefined,
    waitMs,
  };
  const { recordsLostAtMs } = tenant;
  return recordsLostAtMs === undefined ? command : claimAfterLoss(command, recordsLostAtMs);
}

/** Parses the length of a claim's lease, in milliseconds; 0: the claim completes its record itself. */
function parseClaimedLeaseMs(request: ClaimRequest, policy: Policy, violations: Violations): number {
  const leaseMs = parseLeaseMs(request, policy, violations);
  if (request.completion === undefined) return leaseMs ?? policy.defaultLeaseMs;
  if (request.lease !== undefined)
    violations.add("lease", "must be unset with `completion`, which needs no lease");
  return 0;
}

/** Returns how long a result is kept. An empty one needs no room, and no sweep before that of its key. */
function resultRetentionsS(
  leaseMs: number,
  stamped: Pick<Policy, "resultRetentionS" | "failureRetentionS">,
  keyRetentionS: number,
) {
  if (completesItself({ leaseMs }))
    return { resultRetentionS: keyRetentionS, failureRetentionS: keyRetentionS };
  return {
    resultRetentionS: Math.min(stamped.resultRetentionS, keyRetentionS),
    failureRetentionS: Math.min(stamped.failureRetentionS, keyRetentionS),
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

/** The bits of a UUID that say which version and variant (RFC 9562) it is, and its three groups of time. */
const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-([167])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const UUID_CHARACTERS = 36;

/** The first character of a ULID is at most 7, because 26 characters of 5 bits hold 130 bits and a ULID has 128. */
const ULID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i;
const ULID_CHARACTERS = 26;
const ULID_TIME_CHARACTERS = 10;
/** Crockford's base32, as ULIDs use it (https://github.com/ulid/spec). */
const ULID_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** From 1582-10-15, where UUIDs of versions 1 and 6 begin to count, to the Unix epoch. */
const GREGORIAN_OFFSET_MS = 12_219_292_800_000n;
/** UUIDs of versions 1 and 6 count intervals of 100 ns. */
const INTERVALS_PER_MS = 10_000n;

/**
 * Returns when a key was created, in milliseconds since the Unix epoch, if the whole key is a UUID of version 1, 6 or 7, or a
 * ULID; undefined for every other key. A key that contains such an id is not read: the rest of it may be older or newer.
 */
export function timeInKey(key: string): number | undefined {
  // Every claim comes here, and nearly all other keys have another length.
  if (key.length === UUID_CHARACTERS) return timeInUuid(key);
  if (key.length === ULID_CHARACTERS && ULID.test(key)) return timeInUlid(key.toLowerCase());
  return undefined;
}

function timeInUuid(key: string): number | undefined {
  const [, first = "", second = "", version, third = ""] = UUID.exec(key) ?? [];
  switch (version) {
    case "7":
      return Number.parseInt(first + second, 16);
    case "6":
      return sinceUnixEpochMs(first + second + third);
    case "1":
      return sinceUnixEpochMs(third + second + first);
    default:
      return undefined;
  }
}

function sinceUnixEpochMs(intervals: string): number {
  return Number(BigInt(`0x${intervals}`) / INTERVALS_PER_MS - GREGORIAN_OFFSET_MS);
}

function timeInUlid(key: string): number {
  let ms = 0;
  for (const digit of key.slice(0, ULID_TIME_CHARACTERS)) ms = ms * 32 + ULID_DIGITS.indexOf(digit);
  return ms;
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
      const { fencingToken, attempt, checkpoint, unknown } = outcome;
      const value: Claimed = {
        $typeName: "onceward.v1.Claimed",
        fencingToken,
        attempt,
        leaseExpiresAt: timestamp(outcome.leaseExpiresAtMs),
        leaseRemaining: duration(outcome.leaseRemainingMs),
        firstClaimedAt: timestamp(outcome.firstClaimedAtMs),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
        ...(unknown && { unknown: ambiguousMessage({ ...unknown, attempt: attempt - 1 }) }),
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
    case "recorded": {
      const value: Recorded = {
        $typeName: "onceward.v1.Recorded",
        completedAt: timestamp(outcome.completedAtMs),
      };
      return { case: "recorded", value };
    }
    case "ambiguous": {
      const { checkpoint } = outcome;
      const value = {
        ...ambiguousMessage(outcome),
        ...(checkpoint && { checkpoint: checkpointMessage(checkpoint) }),
      };
      return { case: "ambiguous", value };
    }
  }
}

function ambiguousMessage(last: {
  readonly owner: string;
  readonly attempt: number;
  readonly leaseExpiredAtMs: number;
}): Ambiguous {
  const { owner, attempt, leaseExpiredAtMs } = last;
  return {
    $typeName: "onceward.v1.Ambiguous",
    owner,
    attempt,
    leaseExpiredAt: timestamp(leaseExpiredAtMs),
  };
}
