import { create } from "@bufbuild/protobuf";
import { databaseNowMs } from "../core/calls/authority.ts";
import {
  describeLimitMs,
  FINGERPRINT_BYTES,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_CHECKPOINT_STATE_BYTES,
  MAX_CLAIM_ID_BYTES,
  MAX_KEY_AHEAD_MS,
  MAX_KEY_BYTES,
  MAX_OWNER_BYTES,
  MAX_RELEASE_REASON_BYTES,
  MAX_WAIT_MS,
  MIN_LEASE_MS,
  MIN_RETENTION_S,
} from "../core/domain/limits.ts";
import type { Policy, PolicyInForce } from "../core/domain/policy.ts";
import { WIDEST_BOUNDS } from "../core/domain/policy-bounds.ts";
import { Refusal } from "../core/domain/refusal.ts";
import { type Principal, policyFor } from "../core/domain/tenant.ts";
import { duration, timestamp, Violations } from "../core/messages/violations.ts";
import {
  type Ambiguous,
  type Claimed,
  type ClaimRequest,
  type ClaimResponse,
  type Completed,
  type CompleteRequest,
  type CompleteResponse,
  CompleteResponseSchema,
  type ExtendLeaseRequest,
  type ExtendLeaseResponse,
  ExtendLeaseResponseSchema,
  type InProgress,
  type LookupRequest,
  type LookupResponse,
  LookupResponseSchema,
  type ReleaseRequest,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { timeInKey } from "./claim/key-time.ts";
import { acceptedUntilMs, claimAfterLoss } from "./late-keys.ts";
import {
  answeredAtMs,
  type Checkpoint,
  type ClaimCommand,
  type ClaimOutcome,
  type LiveRecord,
  type RecordId,
} from "./record.ts";
import { checkpointMessage, recordMessage, resultMessage } from "./record-messages.ts";
import { digestResult } from "./result-digest.ts";
import { checkResultSize, parseResult } from "./result-requests.ts";
import type {
  CompleteCommand,
  Completion,
  ExtendLeaseCommand,
  LeaseExtension,
  Release,
  ReleaseCommand,
} from "./settlement.ts";

// Translates between messages and the domain: requests become commands, and outcomes become responses.

/** A claim, and how long it may wait for a record that is in progress. */
export interface ParsedClaim {
  readonly command: ClaimCommand;
  readonly waitMs: number;
}

/**
 * Parses a claim. No parser of this file reaches the database.
 *
 * @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED. All parsers of this file throw these.
 */
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

/** @throws Refusal RESULT_TOO_LARGE, and the same as `parseClaim`. */
export function parseComplete(request: CompleteRequest, principal: Principal): CompleteCommand {
  const { id, policy, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  const result = parseResult("result", request.result, violations);
  const retentionS = parseRetentionS(request, policy, violations);
  violations.throwIfAny();
  if (result === undefined) throw new Error("a missing result is not a violation");

  checkResultSize(result, policy);
  const keyRetentionS = policy.lateKeys === "RUN" ? retentionS : undefined;
  return { id, fencingToken, result, resultDigest: digestResult(result), keyRetentionS };
}

export function parseRelease(request: ReleaseRequest, principal: Principal): ReleaseCommand {
  const { id, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  violations.prose("reason", request.reason, { maxBytes: MAX_RELEASE_REASON_BYTES });
  violations.throwIfAny();
  return { id, fencingToken, reason: request.reason };
}

export function parseExtendLease(request: ExtendLeaseRequest, principal: Principal): ExtendLeaseCommand {
  const { id, policy, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  const leaseMs = parseLeaseMs(request, policy, violations);
  const checkpoint = parseCheckpoint(request, violations);
  violations.throwIfAny();
  return { id, fencingToken, leaseMs, checkpoint };
}

export function parseLookup(
  request: Pick<LookupRequest, "namespace" | "key">,
  principal: Principal,
): RecordId {
  const { id, violations } = readRecordId(request, principal);
  violations.throwIfAny();
  return id;
}

/** Parses the namespace and the key, which every request about a record has. */
export function readRecordId(
  request: { readonly namespace: string; readonly key: string },
  principal: Principal,
) {
  if (principal.role === "OPERATOR") throw new Error("an operator reached a tenant's service");
  const { tenant, namespaces } = principal;
  const { namespace, key } = request;
  const violations = new Violations();
  const isNamespace = violations.name("namespace", namespace);
  if (isNamespace && namespaces !== undefined && !namespaces.has(namespace)) {
    throw new Refusal("NAMESPACE_DENIED", "The API key is limited to other namespaces.", {
      metadata: { namespace },
    });
  }
  violations.text("key", key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  return {
    id: { tenantId: tenant.id, namespace, key },
    tenant,
    /** The policy of the request's namespace; each use looks it up. @throws PolicyNotLoaded as NamespacePolicies.policyOf. */
    get policy(): PolicyInForce {
      return isNamespace ? policyFor(tenant, namespace) : tenant.policy;
    },
    violations,
  };
}

function parseFencingToken(request: { readonly fencingToken: bigint }, violations: Violations): bigint {
  const { fencingToken } = request;
  if (fencingToken === 0n)
    violations.add("fencing_token", "is missing: it must be the token that Claim returned");
  else if (fencingToken < 0n) violations.add("fencing_token", "must be the token that Claim returned");
  return fencingToken;
}

const LONGEST_LEASE = `the longest lease of the namespace's policy, which can allow up to ${describeLimitMs(WIDEST_BOUNDS.maxLeaseMs)}`;

function parseLeaseMs(
  request: Pick<ClaimRequest, "lease">,
  { maxLeaseMs }: Policy,
  violations: Violations,
): number | undefined {
  const bounds = { minMs: MIN_LEASE_MS, maxMs: maxLeaseMs, maxIs: LONGEST_LEASE };
  return violations.durationMs("lease", request.lease, bounds);
}

/** Rounds a fraction of a second up: a key is never forgotten before the requested time. */
function parseRetentionS(
  request: Pick<ClaimRequest, "retention">,
  { keyRetentionS }: Policy,
  violations: Violations,
): number | undefined {
  const maxIs = "the key retention of the namespace's policy";
  const bounds = { minMs: MIN_RETENTION_S * 1000, maxMs: keyRetentionS * 1000, maxIs };
  const retentionMs = violations.durationMs("retention", request.retention, bounds);
  return retentionMs === undefined ? undefined : Math.ceil(retentionMs / 1000);
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

function parseCheckpoint(
  { checkpoint }: Pick<ExtendLeaseRequest, "checkpoint">,
  violations: Violations,
): Checkpoint | undefined {
  if (checkpoint === undefined) return undefined;
  const { name, state } = checkpoint;
  violations.text("checkpoint.name", name, { minBytes: 1, maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  violations.bytes("checkpoint.state", state, { maxBytes: MAX_CHECKPOINT_STATE_BYTES });
  return { name, state };
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
