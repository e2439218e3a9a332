import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { updateTenant } from "../../database/tenants/tenants.ts";
import { completeQuotas } from "../../domain/quotas.ts";
import { Violations } from "../../domain/violations.ts";
import { UpdateTenantLimitsResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { checkEtag } from "../etags.ts";
import { maskedFields } from "../field-messages.ts";
import { BOUND_MESSAGES, QUOTA_MESSAGES } from "../policy-messages.ts";
import type { OperatorRpc } from "../services.ts";
import { checkBounds, type LimitMessages, type Limits, limitsSnapshot, parseLimits } from "./limits.ts";
import { lockChangeableTenant } from "./locked-tenant.ts";
import { tenantEtag, tenantMessage } from "./tenant-messages.ts";

/** Changes a tenant's limits with their audit event, or only returns what would change for `validate_only`. */
export const updateTenantLimits: OperatorRpc<"updateTenantLimits"> = async (request, call, parts) => {
  const { pool, changes } = parts;
  const violations = new Violations();
  violations.name("name", request.name);
  const asked = parseLimits(request, violations);
  const masked = maskedLimits(request.updateMask, request, violations);
  violations.throwIfAny();
  const tenant = await pool.transaction(async (transaction) => {
    const was = await lockChangeableTenant(transaction, request.name);
    checkEtag(request.etag, tenantEtag(was));
    const becomes = { ...was, ...mergeLimits(was, asked, masked) };
    const violations = new Violations();
    checkBounds(becomes.bounds, violations);
    violations.throwIfAny();
    if (request.validateOnly) return becomes;

    await recordChange(transaction, call, {
      action: "UpdateTenantLimits",
      target: `tenant ${was.name}`,
      tenant: was,
      before: limitsSnapshot(was),
      after: limitsSnapshot(becomes),
    });
    return updateTenant(transaction, becomes);
  });
  changes.tenantChanged(tenant.id);
  return create(UpdateTenantLimitsResponseSchema, { tenant: tenantMessage(tenant) });
};

/** Returns the paths of the limits that an update changes; see `maskedFields`. */
function maskedLimits(
  mask: FieldMask | undefined,
  { policyBounds, quotas }: LimitMessages,
  violations: Violations,
): ReadonlySet<string> {
  const paths = [...BOUND_MESSAGES.paths, ...QUOTA_MESSAGES.paths];
  const set = [...BOUND_MESSAGES.pathsOf(policyBounds), ...QUOTA_MESSAGES.pathsOf(quotas)];
  return maskedFields(mask, { paths, set }, violations);
}

/** Returns the limits whose path is in the mask from `asked`, and the others from `was`. */
function mergeLimits(was: Limits, asked: Limits, mask: ReadonlySet<string>): Limits {
  return {
    bounds: BOUND_MESSAGES.merge(was.bounds, asked.bounds, mask),
    quotas: completeQuotas(QUOTA_MESSAGES.merge(was.quotas, asked.quotas, mask)),
  };
}
