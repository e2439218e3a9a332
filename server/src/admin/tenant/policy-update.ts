import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { PolicyOverrides } from "../../domain/policy.ts";
import { boundsInForce, policyViolations, WIDEST_BOUNDS } from "../../domain/policy-bounds.ts";
import type { TenantResource } from "../../domain/tenant-resource.ts";
import type { Policy } from "../../gen/onceward/v1/policy_pb.ts";
import { Violations } from "../../messages/violations.ts";
import type { Snapshot } from "../../store/tenants/audit-events.ts";
import { isPolicyFieldSet, mergePolicy, POLICY_FIELDS, parsePolicyMessage } from "../policy-messages.ts";
import { maskedFields } from "../update-mask.ts";

/** What an update asks for: the fields to set, and to what. */
export interface PolicyUpdate {
  readonly asked: PolicyOverrides;
  readonly masked: ReadonlySet<string>;
}

/** Adds a violation for everything that no tenant may set. */
export function parsePolicyUpdate(
  message: Policy | undefined,
  mask: FieldMask | undefined,
  violations: Violations,
): PolicyUpdate {
  const asked = parsePolicyMessage(message, WIDEST_BOUNDS, violations);
  const isSet = (field: string) => isPolicyFieldSet(message, field);
  return { asked, masked: maskedFields(mask, POLICY_FIELDS, isSet, violations) };
}

/**
 * The policy as it becomes.
 *
 * @throws Refusal INVALID_REQUEST for a field that is set beyond what the operator lets this tenant set. A field that is
 *   left alone may be beyond bounds that came later.
 */
export function applyPolicyUpdate(
  was: PolicyOverrides,
  { asked, masked }: PolicyUpdate,
  { bounds }: TenantResource,
): PolicyOverrides {
  const becomes = mergePolicy(was, asked, masked);
  const violations = new Violations();
  for (const { field, description } of policyViolations(becomes, boundsInForce(bounds), "policy.")) {
    if (masked.has(field)) violations.add(field, description);
  }
  violations.throwIfAny();
  return becomes;
}

/** A policy for the audit: what is set. */
export function policySnapshot(policy: PolicyOverrides): Snapshot {
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));
}
