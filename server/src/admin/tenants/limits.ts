import type { Snapshot } from "../../database/tenants/audit-events.ts";
import type { NarrowedBounds } from "../../domain/policy-bounds.ts";
import { completeQuotas } from "../../domain/quotas.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import type { Violations } from "../../domain/violations.ts";
import type { UpdateTenantLimitsRequest } from "../../gen/onceward/v1/operator_pb.ts";
import { BOUND_MESSAGES, QUOTA_MESSAGES } from "../policy-messages.ts";

/** What an operator sets of a tenant: the limits of its policies and of its use. */
export type Limits = Pick<TenantResource, "bounds" | "quotas">;

/** The fields of a request that sets limits. */
export type LimitMessages = Partial<Pick<UpdateTenantLimitsRequest, "policyBounds" | "quotas">>;

/** Returns the limits that a request sets. Adds a violation for everything that is beyond what the contract allows. */
export function parseLimits({ policyBounds, quotas }: LimitMessages, violations: Violations): Limits {
  return {
    bounds: BOUND_MESSAGES.parse(policyBounds, violations),
    quotas: completeQuotas(QUOTA_MESSAGES.parse(quotas, violations)),
  };
}

/** Adds a violation for bounds that no retention is within. */
export function checkBounds(
  { minKeyRetentionS, maxKeyRetentionS }: NarrowedBounds,
  violations: Violations,
): void {
  if (minKeyRetentionS === undefined || maxKeyRetentionS === undefined) return;
  if (minKeyRetentionS > maxKeyRetentionS) {
    violations.add("policy_bounds.min_key_retention", "must not be longer than max_key_retention");
  }
}

/** Returns a tenant's limits as audit events show them. */
export function limitsSnapshot({ bounds, quotas }: Limits): Snapshot {
  return { policyBounds: { ...bounds }, quotas: { ...quotas } };
}
