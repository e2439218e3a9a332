import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { POLICY_FIELDS, type Policy, type PolicyOverrides } from "../../core/domain/policy.ts";
import {
  BOUND_FIELDS,
  type NarrowedBounds,
  type PolicyBounds,
  policyViolations,
} from "../../core/domain/policy-bounds.ts";
import { completeQuotas, QUOTA_FIELDS, type Quotas } from "../../core/domain/quotas.ts";
import type { TenantResource } from "../../core/domain/tenant.ts";
import type { Violations } from "../../core/messages/violations.ts";
import {
  type PolicyBounds as BoundsMessage,
  PolicyBoundsSchema,
  type Policy as PolicyMessage,
  PolicySchema,
  type Quotas as QuotasMessage,
  QuotasSchema,
} from "../../gen/onceward/v1/policy_pb.ts";
import { createFieldMessages, maskedFields } from "./field-messages.ts";

/** Before the paths of a policy's fields. */
export const POLICY_PREFIX = "policy.";

export const POLICY_MESSAGES = createFieldMessages<typeof PolicySchema, Policy>(
  PolicySchema,
  POLICY_FIELDS,
  POLICY_PREFIX,
);
export const BOUND_MESSAGES = createFieldMessages<typeof PolicyBoundsSchema, PolicyBounds>(
  PolicyBoundsSchema,
  BOUND_FIELDS,
  "policy_bounds.",
);
export const QUOTA_MESSAGES = createFieldMessages<typeof QuotasSchema, Quotas>(
  QuotasSchema,
  QUOTA_FIELDS,
  "quotas.",
);

/** Returns the fields that a request sets. Adds a violation for every field that is malformed or beyond the bounds. */
export function parsePolicy(
  message: PolicyMessage | undefined,
  bounds: PolicyBounds,
  violations: Violations,
): PolicyOverrides {
  const policy = POLICY_MESSAGES.parse(message, violations);
  for (const { field, description } of policyViolations(policy, bounds, POLICY_PREFIX)) {
    violations.add(field, description);
  }
  return policy;
}

/** What an operator sets of a tenant: the limits of its policies and of its use. */
export type Limits = Pick<TenantResource, "bounds" | "quotas">;

/** A request that sets limits. */
export interface LimitMessages {
  readonly policyBounds?: BoundsMessage | undefined;
  readonly quotas?: QuotasMessage | undefined;
}

/** Returns the limits that a request sets. Adds a violation for everything that is beyond what the contract allows. */
export function parseLimits({ policyBounds, quotas }: LimitMessages, violations: Violations): Limits {
  return {
    bounds: BOUND_MESSAGES.parse(policyBounds, violations),
    quotas: completeQuotas(QUOTA_MESSAGES.parse(quotas, violations)),
  };
}

/** Returns the paths of the limits that an update changes; see `maskedFields`. */
export function maskedLimits(
  mask: FieldMask | undefined,
  { policyBounds, quotas }: LimitMessages,
  violations: Violations,
): ReadonlySet<string> {
  const paths = [...BOUND_MESSAGES.paths, ...QUOTA_MESSAGES.paths];
  const set = [...BOUND_MESSAGES.pathsOf(policyBounds), ...QUOTA_MESSAGES.pathsOf(quotas)];
  return maskedFields(mask, { paths, set }, violations);
}

/** Returns the limits whose path is in the mask from `asked`, and the others from `was`. */
export function mergeLimits(was: Limits, asked: Limits, mask: ReadonlySet<string>): Limits {
  return {
    bounds: BOUND_MESSAGES.merge(was.bounds, asked.bounds, mask),
    quotas: completeQuotas(QUOTA_MESSAGES.merge(was.quotas, asked.quotas, mask)),
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
