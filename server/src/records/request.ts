import { describeLimitMs, MAX_KEY_BYTES, MIN_LEASE_MS, MIN_RETENTION_S } from "../domain/limits.ts";
import type { Policy, PolicyInForce } from "../domain/policy.ts";
import { WIDEST_BOUNDS } from "../domain/policy-bounds.ts";
import { Refusal } from "../domain/refusal.ts";
import { type Principal, policyFor } from "../domain/tenant.ts";
import { Violations } from "../domain/violations.ts";
import type { ClaimRequest } from "../gen/onceward/v1/idempotency_pb.ts";

// The fields that requests about a record have in common. No parser of a command reaches the database; each throws Refusal
// INVALID_REQUEST with every violation, and NAMESPACE_DENIED.

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

/** Parses the token of the claim that a request settles or extends. */
export function parseFencingToken(
  request: { readonly fencingToken: bigint },
  violations: Violations,
): bigint {
  const { fencingToken } = request;
  if (fencingToken === 0n)
    violations.add("fencing_token", "is missing: it must be the token that Claim returned");
  else if (fencingToken < 0n) violations.add("fencing_token", "must be the token that Claim returned");
  return fencingToken;
}

const LONGEST_LEASE = `the longest lease of the namespace's policy, which can allow up to ${describeLimitMs(WIDEST_BOUNDS.maxLeaseMs)}`;

/** Parses the length of a lease, in milliseconds; undefined: the request has none. */
export function parseLeaseMs(
  request: Pick<ClaimRequest, "lease">,
  { maxLeaseMs }: Policy,
  violations: Violations,
): number | undefined {
  const bounds = { minMs: MIN_LEASE_MS, maxMs: maxLeaseMs, maxIs: LONGEST_LEASE };
  return violations.durationMs("lease", request.lease, bounds);
}

/**
 * Parses a retention, in seconds; undefined: the request has none. Rounds a fraction of a second up: a key is never forgotten
 * before the requested time.
 */
export function parseRetentionS(
  request: Pick<ClaimRequest, "retention">,
  { keyRetentionS }: Policy,
  violations: Violations,
): number | undefined {
  const maxIs = "the key retention of the namespace's policy";
  const bounds = { minMs: MIN_RETENTION_S * 1000, maxMs: keyRetentionS * 1000, maxIs };
  const retentionMs = violations.durationMs("retention", request.retention, bounds);
  return retentionMs === undefined ? undefined : Math.ceil(retentionMs / 1000);
}
