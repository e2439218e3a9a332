import type { Call } from "../../../core/calls/call.ts";
import { parsing } from "../../../core/claims/messages.ts";
import {
  FINGERPRINT_BYTES,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_KEY_BYTES,
  MAX_OWNER_BYTES,
  MAX_REASON_BYTES,
  NAMESPACE_PATTERN,
} from "../../../core/domain/limits.ts";
import type { Policy } from "../../../core/domain/policy.ts";
import { digestResult } from "../../../core/domain/result-digest.ts";
import { checkResultSize, parseResult } from "../../../core/messages/result-requests.ts";
import type { Violations } from "../../../core/messages/violations.ts";
import { Record_State } from "../../../gen/onceward/v1/record_pb.ts";
import {
  type ListRecordsRequest,
  ListRecordsRequest_Order,
  type ResolveRecordRequest,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { Resolution, ResolveCommand } from "../../jobs/resolution.ts";
import type { RecordFilter } from "../../jobs/store/list-records.ts";
import { administeredNamespace, administeredTenant } from "./own-tenant.ts";

/** Parses the filter of a list. Adds a violation for everything that is malformed. @throws Refusal NAMESPACE_DENIED. */
export function parseRecordFilter(
  request: ListRecordsRequest,
  call: Call,
  violations: Violations,
): RecordFilter {
  const { namespace, keyPrefix } = request;
  if (namespace !== "" && !NAMESPACE_PATTERN.test(namespace)) {
    violations.add("namespace", `must match ${NAMESPACE_PATTERN.source}`);
  }
  violations.text("key_prefix", keyPrefix, { maxBytes: MAX_KEY_BYTES });
  violations.text("owner", request.owner, { maxBytes: MAX_OWNER_BYTES });
  violations.text("checkpoint", request.checkpoint, { maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  if (request.fingerprint.byteLength > 0 && request.fingerprint.byteLength !== FINGERPRINT_BYTES) {
    violations.add("fingerprint", `must have ${FINGERPRINT_BYTES} bytes`);
  }
  const filter = {
    namespace: namespace === "" ? undefined : namespace,
    state: parseState(request.state, violations),
    keyPrefix,
    key: request.key,
    claimedAfterMs: violations.timestampMs("claimed_after", request.claimedAfter),
    claimedBeforeMs: violations.timestampMs("claimed_before", request.claimedBefore),
    owner: request.owner,
    fingerprint: request.fingerprint.byteLength === 0 ? undefined : request.fingerprint,
    leaseExpiredBeforeMs: violations.timestampMs("lease_expired_before", request.leaseExpiredBefore),
    checkpoint: request.checkpoint,
  };
  if (request.key !== "") checkAlone(request, violations);
  const tenant = namespace === "" ? administeredTenant(call) : administeredNamespace(call, namespace);
  return { tenantId: tenant.id, ...filter };
}

/** Adds a violation for every field that `key` excludes: it finds a record, and the other fields select from a list. */
function checkAlone(request: ListRecordsRequest, violations: Violations): void {
  violations.text("key", request.key, { maxBytes: MAX_KEY_BYTES });
  const others = {
    state: request.state !== Record_State.UNSPECIFIED,
    key_prefix: request.keyPrefix !== "",
    claimed_after: request.claimedAfter !== undefined,
    claimed_before: request.claimedBefore !== undefined,
    owner: request.owner !== "",
    checkpoint: request.checkpoint !== "",
    fingerprint: request.fingerprint.byteLength > 0,
    lease_expired_before: request.leaseExpiredBefore !== undefined,
    order: request.order !== ListRecordsRequest_Order.UNSPECIFIED,
  };
  for (const [field, isSet] of Object.entries(others)) {
    if (isSet) violations.add(field, "must not be set with key");
  }
}

/** An order of a list of records: by namespace and key, or by the end of the lease. */
export type RecordOrder = "key" | "leaseExpiry";

/** Parses the order of a list. Adds a violation for an unknown one, or one that the request's state does not have. */
export function parseRecordOrder({ order, state }: ListRecordsRequest, violations: Violations): RecordOrder {
  switch (order) {
    case ListRecordsRequest_Order.UNSPECIFIED:
      return "key";
    case ListRecordsRequest_Order.LEASE_EXPIRY:
      if (state !== Record_State.AMBIGUOUS) {
        violations.add("order", "ORDER_LEASE_EXPIRY needs the state STATE_AMBIGUOUS");
      }
      return "leaseExpiry";
    default:
      violations.add("order", "must be an order of records");
      return "key";
  }
}

function parseState(state: Record_State, violations: Violations): RecordFilter["state"] {
  switch (state) {
    case Record_State.UNSPECIFIED:
      return undefined;
    case Record_State.IN_PROGRESS:
      return "inProgress";
    case Record_State.COMPLETED:
      return "completed";
    case Record_State.RELEASED:
      return "released";
    case Record_State.AMBIGUOUS:
      return "ambiguous";
    default:
      violations.add("state", "must be a state of a record");
      return undefined;
  }
}

/** Parses a resolution. @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED; RESULT_TOO_LARGE. */
export function parseResolve(request: ResolveRecordRequest, { principal }: Call): ResolveCommand {
  const { id, policy, violations } = parsing(request, principal);
  const { reason, fencingToken } = request;
  parseReason(reason, violations);
  if (fencingToken < 0n) violations.add("fencing_token", "must be a token that Claim returned, or 0");
  const resolution = parseResolution(request.resolution, policy, violations);
  return { id, resolution, reason, fencingToken: fencingToken === 0n ? undefined : fencingToken };
}

/** Adds a violation unless the administrator gave a reason. */
export function parseReason(reason: string, violations: Violations): void {
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  if (reason.trim() === "") violations.add("reason", "is required");
}

/** Parses how to resolve. @throws Refusal INVALID_REQUEST with every violation so far; RESULT_TOO_LARGE. */
export function parseResolution(
  resolution: ResolveRecordRequest["resolution"],
  policy: Policy,
  violations: Violations,
): Resolution {
  if (resolution.case === undefined) violations.add("resolution", "must be forget, release or complete");
  const result =
    resolution.case === "complete"
      ? parseResult("complete.result", resolution.value.result, violations)
      : undefined;
  violations.throwIfAny();
  switch (resolution.case) {
    case "forget":
    case "release":
      return { kind: resolution.case };
    default:
      if (result === undefined) throw new Error("a missing result is not a violation");
      checkResultSize(result, policy);
      return { kind: "complete", result, resultDigest: digestResult(result) };
  }
}
