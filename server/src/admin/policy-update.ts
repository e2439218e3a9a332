import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { Call } from "../access/call.ts";
import { type PolicyOverrides, resolvePolicy } from "../domain/policy.ts";
import { boundsInForce, policyViolations, WIDEST_BOUNDS } from "../domain/policy-bounds.ts";
import { databaseNowMs, type TenantResource } from "../domain/tenant.ts";
import { Violations } from "../domain/violations.ts";
import type { Policy } from "../gen/onceward/v1/policy_pb.ts";
import { historyAfter } from "../records/late-keys.ts";
import { maskedFields } from "./field-messages.ts";
import { POLICY_MESSAGES, POLICY_PREFIX, parsePolicy } from "./policy-messages.ts";

/** The fields that an update changes, and their new values. */
export interface PolicyUpdate {
  readonly asked: PolicyOverrides;
  readonly masked: ReadonlySet<string>;
}

/** Parses an update. Adds a violation for everything that no tenant may set. */
export function parsePolicyUpdate(
  message: Policy | undefined,
  mask: FieldMask | undefined,
  violations: Violations,
): PolicyUpdate {
  const asked = parsePolicy(message, WIDEST_BOUNDS, violations);
  const fields = { paths: POLICY_MESSAGES.paths, set: POLICY_MESSAGES.pathsOf(message) };
  return { asked, masked: maskedFields(mask, fields, violations) };
}

/**
 * Returns the updated policy, with what the earlier policies leave behind. `inherits`: the policies that it inherits from.
 *
 * @throws Refusal INVALID_REQUEST if the update sets a field beyond what the operator lets this tenant set. A field that the
 *   update leaves alone may be beyond bounds that were set later.
 */
export function applyPolicyUpdate(
  was: PolicyOverrides,
  inherits: readonly PolicyOverrides[],
  { asked, masked }: PolicyUpdate,
  { bounds }: TenantResource,
  { principal }: Call,
): PolicyOverrides {
  const becomes = POLICY_MESSAGES.merge(was, asked, masked);
  const violations = new Violations();
  for (const { field, description } of policyViolations(
    becomes,
    boundsInForce(bounds),
    POLICY_PREFIX,
    inherits,
  )) {
    if (masked.has(field)) violations.add(field, description);
  }
  violations.throwIfAny();
  const history = historyAfter(
    resolvePolicy(...inherits, was),
    resolvePolicy(...inherits, becomes),
    databaseNowMs(principal),
  );
  return { ...becomes, history };
}
