import type {
  ClaimRequest,
  CompleteRequest,
  ExtendLeaseRequest,
  ReleaseRequest,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { type Checkpoint, type Result, Result_Kind } from "../gen/onceward/v1/record_pb.ts";
import { utf8Length } from "../wire/bytes.ts";
import {
  FINGERPRINT_BYTES,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_CHECKPOINT_STATE_BYTES,
  MAX_CLAIM_ID_BYTES,
  MAX_CONTENT_TYPE_BYTES,
  MAX_KEY_BYTES,
  MAX_METADATA_BYTES,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_NAME_BYTES,
  MAX_METADATA_VALUE_BYTES,
  MAX_OWNER_BYTES,
  MAX_RELEASE_REASON_BYTES,
  MAX_WAIT_MS,
  MIN_LEASE_MS,
  MIN_RETENTION_S,
  NAMESPACE_PATTERN,
  NAMESPACE_RULE,
} from "../wire/limits.ts";
import { parseKeyAge } from "./late-keys.ts";
import { retentionOf, type TestingPolicy } from "./policy.ts";
import type { RecordId } from "./record.ts";
import type { ClaimCommand } from "./records.ts";
import { refusal } from "./refusal.ts";
import { Violations } from "./violations.ts";

/** Parses a Claim. Like the other parsers here, throws OncewardError INVALID_REQUEST with every violation. */
export function parseClaim(
  request: ClaimRequest,
  policy: TestingPolicy,
  nowMs: number,
): { readonly command: ClaimCommand; readonly waitMs: number } {
  const violations = new Violations();
  const { fingerprint, claimId, owner, acceptAmbiguous } = request;
  const id = parseId(request, violations);
  const bytes = fingerprint.byteLength;
  if (bytes !== 0 && bytes !== FINGERPRINT_BYTES) {
    violations.add("fingerprint", `must be 0 or ${FINGERPRINT_BYTES} bytes, is ${bytes}`);
  }
  if (policy.requireFingerprint && bytes === 0) {
    violations.add("fingerprint", "is required by the namespace's policy");
  }
  violations.text("claim_id", claimId, { maxBytes: MAX_CLAIM_ID_BYTES });
  violations.text("owner", owner, { maxBytes: MAX_OWNER_BYTES });
  const leaseMs = parseLeaseMs(request, policy, violations) ?? policy.defaultLeaseMs;
  const requestedS = parseRetentionS(request, policy, violations);
  const age = parseKeyAge(request, policy, nowMs, violations);
  const waitMs = violations.durationMs("wait", request.wait, { minMs: 0, maxMs: MAX_WAIT_MS }) ?? 0;
  violations.throwIfAny();
  const terms = { leaseMs, onLeaseExpiry: policy.onLeaseExpiry, ...retentionOf(policy, requestedS) };
  const bound = bytes === 0 ? undefined : fingerprint;
  return { command: { id, fingerprint: bound, claimId, owner, acceptAmbiguous, age, terms }, waitMs };
}

/** Parses a Complete. @throws OncewardError INVALID_REQUEST, RESULT_TOO_LARGE. */
export function parseComplete(request: CompleteRequest, policy: TestingPolicy) {
  const violations = new Violations();
  const held = parseHeld(request, violations);
  const result = parseResult(request.result, violations);
  const keyRetentionS = parseRetentionS(request, policy, violations);
  violations.throwIfAny();
  if (result === undefined) throw new Error("a result that is neither there nor a violation");
  const actual = result.payload.byteLength + metadataBytes(result);
  const limit = policy.maxResultBytes;
  if (actual > limit) {
    throw refusal(
      "RESULT_TOO_LARGE",
      `The result has ${actual} bytes with its metadata; the policy allows ${limit}.`,
      {
        metadata: { limit_bytes: String(limit), actual_bytes: String(actual) },
      },
    );
  }
  // Where late keys are refused, the record is kept as claimed: it outlives the time in which its key is accepted.
  return { ...held, result, keyRetentionS: policy.lateKeys === "RUN" ? keyRetentionS : undefined };
}

export function parseRelease(request: ReleaseRequest) {
  const violations = new Violations();
  const held = parseHeld(request, violations);
  violations.prose("reason", request.reason, { maxBytes: MAX_RELEASE_REASON_BYTES });
  violations.throwIfAny();
  return { ...held, reason: request.reason };
}

export function parseExtendLease(request: ExtendLeaseRequest, policy: TestingPolicy) {
  const violations = new Violations();
  const held = parseHeld(request, violations);
  const leaseMs = parseLeaseMs(request, policy, violations);
  const checkpoint = parseCheckpoint(request.checkpoint, violations);
  violations.throwIfAny();
  return { ...held, leaseMs, checkpoint };
}

export function parseLookup(request: RecordId): RecordId {
  const violations = new Violations();
  const id = parseId(request, violations);
  violations.throwIfAny();
  return id;
}

function parseId({ namespace, key }: RecordId, violations: Violations): RecordId {
  if (!NAMESPACE_PATTERN.test(namespace)) {
    violations.add("namespace", NAMESPACE_RULE);
  }
  violations.text("key", key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  return { namespace, key };
}

function parseHeld(request: RecordId & { readonly fencingToken: bigint }, violations: Violations) {
  const id = parseId(request, violations);
  const { fencingToken } = request;
  if (fencingToken <= 0n) violations.add("fencing_token", "must be a token that Claim returned");
  return { id, fencingToken };
}

function parseLeaseMs(
  { lease }: Pick<ClaimRequest, "lease">,
  { maxLeaseMs }: TestingPolicy,
  violations: Violations,
): number | undefined {
  return violations.durationMs("lease", lease, { minMs: MIN_LEASE_MS, maxMs: maxLeaseMs });
}

/** Returns how long the request wants the key to be remembered, in seconds; undefined if it does not say so. */
function parseRetentionS(
  { retention }: Pick<ClaimRequest, "retention">,
  { keyRetentionS }: TestingPolicy,
  violations: Violations,
): number | undefined {
  const bounds = { minMs: MIN_RETENTION_S * 1000, maxMs: keyRetentionS * 1000 };
  const retentionMs = violations.durationMs("retention", retention, bounds);
  return retentionMs === undefined ? undefined : Math.ceil(retentionMs / 1000);
}

function parseResult(result: Result | undefined, violations: Violations): Result | undefined {
  if (result === undefined) {
    violations.add("result", "is required");
    return undefined;
  }
  if (result.kind !== Result_Kind.SUCCESS && result.kind !== Result_Kind.FAILURE) {
    violations.add("result.kind", "must be KIND_SUCCESS or KIND_FAILURE");
  }
  violations.text("result.content_type", result.contentType, { maxBytes: MAX_CONTENT_TYPE_BYTES });
  const entries = Object.entries(result.metadata);
  if (entries.length > MAX_METADATA_ENTRIES) {
    const description = `must have at most ${MAX_METADATA_ENTRIES} entries, has ${entries.length}`;
    violations.add("result.metadata", description);
  }
  for (const [name, value] of entries.slice(0, MAX_METADATA_ENTRIES)) {
    violations.text("result.metadata", name, { minBytes: 1, maxBytes: MAX_METADATA_NAME_BYTES });
    violations.prose("result.metadata", value, { maxBytes: MAX_METADATA_VALUE_BYTES });
  }
  const bytes = metadataBytes(result);
  if (bytes > MAX_METADATA_BYTES) {
    violations.add(
      "result.metadata",
      `must be at most ${MAX_METADATA_BYTES} bytes as JSON, is ${bytes} bytes`,
    );
  }
  return result;
}

/** Returns the size of a result's metadata as JSON; 0 if there is none. */
function metadataBytes({ metadata }: Result): number {
  return Object.keys(metadata).length === 0 ? 0 : utf8Length(JSON.stringify(metadata));
}

function parseCheckpoint(checkpoint: Checkpoint | undefined, violations: Violations): Checkpoint | undefined {
  if (checkpoint === undefined) return undefined;
  violations.text("checkpoint.name", checkpoint.name, { minBytes: 1, maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  violations.length("checkpoint.state", checkpoint.state.byteLength, {
    maxBytes: MAX_CHECKPOINT_STATE_BYTES,
  });
  return checkpoint;
}
