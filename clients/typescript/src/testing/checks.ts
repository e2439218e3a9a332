import { type Duration, durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ClaimRequest, CompleteRequest, ExtendLeaseRequest } from "../gen/onceward/v1/idempotency_pb.ts";
import { keyTime } from "../keys/key-time.ts";
import { utf8Length } from "../wire/bytes.ts";
import { MAX_KEY_AHEAD_MS } from "../wire/limits.ts";
import type { ResolvedPolicy } from "./policy.ts";
import { refusal } from "./refusal.ts";

// What a policy refuses. The client checks everything else before it sends a request. Each function throws ConnectError.

/** Refuses a claim that its policy does not allow. @throws ConnectError INVALID_REQUEST with every violation. */
export function checkClaim(request: ClaimRequest, policy: ResolvedPolicy, nowMs: number): void {
  const { completion, fingerprint, keyCreatedAt, lease, retention } = request;
  const violations: Violation[] = [];
  if (policy.requireFingerprint && fingerprint.byteLength === 0) {
    violations.push(["fingerprint", "is required by the namespace's policy"]);
  }
  violations.push(...leaseViolations(lease, policy), ...retentionViolations(retention));
  if (completion !== undefined && lease !== undefined)
    violations.push(["lease", "must be unset with `completion`, which needs no lease"]);
  const keyMs = keyTimeMs(request, policy);
  if (policy.lateKeys === "REQUIRE_TIME" && keyMs === undefined) {
    violations.push(["key_created_at", "is required by the namespace's policy, as the key contains no time"]);
  }
  if (keyMs !== undefined && keyMs > nowMs + MAX_KEY_AHEAD_MS) {
    const field = keyCreatedAt === undefined ? "key" : "key_created_at";
    violations.push([
      field,
      `must not be created more than ${MAX_KEY_AHEAD_MS / 1000} s after the server's time`,
    ]);
  }
  throwIfAny(violations);
}

/** Refuses a completion that its policy does not allow. @throws ConnectError INVALID_REQUEST, RESULT_TOO_LARGE. */
export function checkComplete({ result, retention }: CompleteRequest, policy: ResolvedPolicy): void {
  throwIfAny(retentionViolations(retention));
  const { payload = new Uint8Array(), metadata = {} } = result ?? {};
  const ofMetadata = Object.keys(metadata).length === 0 ? 0 : utf8Length(JSON.stringify(metadata));
  const actual = payload.byteLength + ofMetadata;
  const limit = policy.maxResultBytes;
  if (actual <= limit) return;
  const message = `The result has ${actual} bytes with its metadata; the policy allows ${limit}.`;
  throw refusal("RESULT_TOO_LARGE", message, { limit_bytes: `${limit}`, actual_bytes: `${actual}` });
}

/** Refuses a lease that its policy does not allow. @throws ConnectError INVALID_REQUEST. */
export function checkExtendLease({ lease }: ExtendLeaseRequest, policy: ResolvedPolicy): void {
  throwIfAny(leaseViolations(lease, policy));
}

/** Refuses a key that has no record and is too old. @throws ConnectError KEY_TOO_OLD. */
export function checkAge(request: ClaimRequest, policy: ResolvedPolicy, nowMs: number): void {
  const keyMs = keyTimeMs(request, policy);
  if (keyMs === undefined) return;
  const acceptedUntilMs = keyMs + policy.keyRetentionS * 1000;
  if (nowMs < acceptedUntilMs) return;
  const message =
    "The key is older than its retention and has no record: its operation may have happened and been forgotten. " +
    "Find out whether it happened; if it did not, repeat it under a new key.";
  const [created, until] = [keyMs, acceptedUntilMs].map((ms) => new Date(ms).toISOString());
  throw refusal("KEY_TOO_OLD", message, { key_created_at: `${created}`, accepted_until: `${until}` });
}

/** Refuses another fingerprint than the key's; a claim without one neither binds nor breaks a key. */
export function checkFingerprint(bound: Uint8Array, brought: Uint8Array): void {
  if (bound.byteLength === 0 || brought.byteLength === 0) return;
  if (bound.every((byte, index) => byte === brought[index])) return;
  throw refusal("FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs.");
}

type Violation = readonly [field: string, description: string];

function leaseViolations(lease: Duration | undefined, { maxLeaseMs }: ResolvedPolicy): Violation[] {
  if (lease === undefined || durationMs(lease) <= maxLeaseMs) return [];
  return [["lease", `must be at most ${maxLeaseMs} ms`]];
}

/** No client sends a retention: the policy alone decides. */
function retentionViolations(retention: Duration | undefined): Violation[] {
  return retention === undefined ? [] : [["retention", "is not in the service in memory: set its policy"]];
}

/** Returns when a claim's key was made; undefined if the policy accepts keys of any age, or the time is unknown. */
function keyTimeMs({ key, keyCreatedAt }: ClaimRequest, { lateKeys }: ResolvedPolicy): number | undefined {
  if (lateKeys === "RUN") return undefined;
  return keyCreatedAt === undefined ? keyTime(key)?.getTime() : timestampMs(keyCreatedAt);
}

function throwIfAny(found: readonly Violation[]): void {
  if (found.length === 0) return;
  const summary = found.map((each) => each.join(" ")).join("; ");
  const violations = found.map(([field, description]) => ({ field, description }));
  throw refusal("INVALID_REQUEST", summary, {}, violations);
}
