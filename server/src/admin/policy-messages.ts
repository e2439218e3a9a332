import { create } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { OnLeaseExpiry, PolicyOverrides } from "../domain/policy.ts";
import { type PolicyBounds, policyViolations } from "../domain/policy-bounds.ts";
import {
  Policy_OnLeaseExpiry,
  type Policy as PolicyMessage,
  PolicySchema,
} from "../gen/onceward/v1/policy_pb.ts";
import type { Violations } from "../messages/violations.ts";
import { duration } from "../messages/wire-times.ts";

/** The fields of a policy: their names in `policy.proto`, in the message, and in the domain. */
const FIELDS = [
  ["key_retention", "keyRetention", "keyRetentionS"],
  ["result_retention", "resultRetention", "resultRetentionS"],
  ["failure_retention", "failureRetention", "failureRetentionS"],
  ["default_lease", "defaultLease", "defaultLeaseMs"],
  ["max_lease", "maxLease", "maxLeaseMs"],
  ["on_lease_expiry", "onLeaseExpiry", "onLeaseExpiry"],
  ["max_result_bytes", "maxResultBytes", "maxResultBytes"],
  ["require_fingerprint", "requireFingerprint", "requireFingerprint"],
] as const satisfies readonly (readonly [string, keyof PolicyMessage, keyof PolicyOverrides])[];

const PREFIX = "policy.";

/** As an update's mask names them. */
export const POLICY_FIELDS: readonly string[] = FIELDS.map(([field]) => PREFIX + field);

/** Whether a request sets a field; one that is unset inherits. */
export function isPolicyFieldSet(message: PolicyMessage | undefined, field: string): boolean {
  const [, name] = FIELDS.find(([known]) => PREFIX + known === field) ?? [];
  if (message === undefined || name === undefined) return false;
  const value = message[name];
  return value !== undefined && value !== Policy_OnLeaseExpiry.UNSPECIFIED;
}

/** What a request sets. Adds a violation for every field that is beyond the bounds, or is no duration. */
export function parsePolicyMessage(
  message: PolicyMessage | undefined,
  bounds: PolicyBounds,
  violations: Violations,
): PolicyOverrides {
  if (message === undefined) return {};
  const ms = (field: string, value: Duration | undefined) => parseMs(PREFIX + field, value, violations);
  const seconds = (field: string, value: Duration | undefined) => {
    const valueMs = ms(field, value);
    // A key is never forgotten before the time asked for.
    return valueMs === undefined ? undefined : Math.ceil(valueMs / 1000);
  };
  const policy = {
    keyRetentionS: seconds("key_retention", message.keyRetention),
    resultRetentionS: seconds("result_retention", message.resultRetention),
    failureRetentionS: seconds("failure_retention", message.failureRetention),
    defaultLeaseMs: ms("default_lease", message.defaultLease),
    maxLeaseMs: ms("max_lease", message.maxLease),
    onLeaseExpiry: parseOnLeaseExpiry(message.onLeaseExpiry, violations),
    maxResultBytes: message.maxResultBytes,
    requireFingerprint: message.requireFingerprint,
  };
  for (const { field, description } of policyViolations(policy, bounds, PREFIX))
    violations.add(field, description);
  return policy;
}

/** Longer than any bound: what is beyond a bound is told by the bound, not by this. */
const MAX_DURATION_MS = 10 * 365 * 86_400_000;

function parseMs(field: string, value: Duration | undefined, violations: Violations): number | undefined {
  return violations.durationMs(field, value, { minMs: 0, maxMs: MAX_DURATION_MS });
}

function parseOnLeaseExpiry(value: Policy_OnLeaseExpiry, violations: Violations): OnLeaseExpiry | undefined {
  switch (value) {
    case Policy_OnLeaseExpiry.UNSPECIFIED:
      return undefined;
    case Policy_OnLeaseExpiry.RECLAIM:
      return "RECLAIM";
    case Policy_OnLeaseExpiry.HOLD:
      return "HOLD";
    default:
      violations.add("policy.on_lease_expiry", "must be ON_LEASE_EXPIRY_RECLAIM or ON_LEASE_EXPIRY_HOLD");
      return undefined;
  }
}

/** The fields that the mask names, from the request; the others as they were. */
export function mergePolicy(
  was: PolicyOverrides,
  asked: PolicyOverrides,
  masked: ReadonlySet<string>,
): PolicyOverrides {
  const changed = FIELDS.filter(([field]) => masked.has(PREFIX + field)).map(([, , name]) => [
    name,
    asked[name],
  ]);
  return { ...was, ...Object.fromEntries(changed) };
}

/** A policy, or what of one is set, as it is shown. */
export function policyMessage(policy: PolicyOverrides): PolicyMessage {
  return create(PolicySchema, {
    ...(policy.keyRetentionS !== undefined && { keyRetention: duration(policy.keyRetentionS * 1000) }),
    ...(policy.resultRetentionS !== undefined && {
      resultRetention: duration(policy.resultRetentionS * 1000),
    }),
    ...(policy.failureRetentionS !== undefined && {
      failureRetention: duration(policy.failureRetentionS * 1000),
    }),
    ...(policy.defaultLeaseMs !== undefined && { defaultLease: duration(policy.defaultLeaseMs) }),
    ...(policy.maxLeaseMs !== undefined && { maxLease: duration(policy.maxLeaseMs) }),
    ...(policy.onLeaseExpiry !== undefined && {
      onLeaseExpiry:
        policy.onLeaseExpiry === "HOLD" ? Policy_OnLeaseExpiry.HOLD : Policy_OnLeaseExpiry.RECLAIM,
    }),
    ...(policy.maxResultBytes !== undefined && { maxResultBytes: policy.maxResultBytes }),
    ...(policy.requireFingerprint !== undefined && { requireFingerprint: policy.requireFingerprint }),
  });
}
