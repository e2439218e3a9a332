import type { Field } from "../domain/fields.ts";
import { POLICY_FIELDS, type Policy, type PolicyOverrides } from "../domain/policy.ts";
import { BOUND_FIELDS, type PolicyBounds, policyViolations } from "../domain/policy-bounds.ts";
import { QUOTA_FIELDS } from "../domain/quotas.ts";
import type { Violations } from "../domain/violations.ts";
import {
  PolicyBoundsSchema,
  type Policy as PolicyMessage,
  PolicySchema,
  QuotasSchema,
} from "../gen/onceward/v1/policy_pb.ts";
import { createFieldMessages } from "./field-messages.ts";

/** Before the paths of a policy's fields. */
export const POLICY_PREFIX = "policy.";

/** Numbers without their ranges: other fields and the tenant's bounds narrow them, see `policyViolations`. */
const WITHOUT_RANGES: readonly Field<Policy>[] = POLICY_FIELDS.map((field) =>
  field.kind === "text" ? field : { ...field, range: undefined },
);

export const POLICY_MESSAGES = createFieldMessages(PolicySchema, WITHOUT_RANGES, POLICY_PREFIX);
export const BOUND_MESSAGES = createFieldMessages(PolicyBoundsSchema, BOUND_FIELDS, "policy_bounds.");
export const QUOTA_MESSAGES = createFieldMessages(QuotasSchema, QUOTA_FIELDS, "quotas.");

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
