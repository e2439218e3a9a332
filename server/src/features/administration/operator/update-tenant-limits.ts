import { create } from "@bufbuild/protobuf";
import type { Call } from "../../../core/calls/call.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { updateTenant } from "../../../core/store/tenants/tenants.ts";
import {
  type UpdateTenantLimitsRequest,
  UpdateTenantLimitsResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audited-change.ts";
import { checkBounds, type Limits, maskedLimits, mergeLimits, parseLimits } from "../policy-messages.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { checkEtag, tenantEtag, tenantMessage } from "../tenant-messages.ts";
import { limitsSnapshot, lockChangeableTenant } from "./tenant-requests.ts";

/** Returns the RPC that sets the bounds of a tenant's policies, and its quotas. */
export function createUpdateTenantLimits({
  pool,
  changes,
}: AdministrationParts): OperatorRpcs<"updateTenantLimits"> {
  return {
    async updateTenantLimits(request, call) {
      const violations = new Violations();
      violations.name("name", request.name);
      const asked = parseLimits(request, violations);
      const masked = maskedLimits(request.updateMask, request, violations);
      violations.throwIfAny();

      const tenant = await pool.transaction((transaction) =>
        changeLimits(transaction, call, request, (was) => mergeLimits(was, asked, masked)),
      );
      changes.tenantChanged(tenant.id);
      return create(UpdateTenantLimitsResponseSchema, { tenant: tenantMessage(tenant) });
    },
  };
}

/** Stores a tenant's new limits with their audit event, or only returns them for `validate_only`. */
async function changeLimits(
  transaction: Runner,
  call: Call,
  request: UpdateTenantLimitsRequest,
  merge: (was: TenantResource) => Limits,
): Promise<TenantResource> {
  const was = await lockChangeableTenant(transaction, request.name);
  checkEtag(request.etag, tenantEtag(was));
  const becomes = { ...was, ...merge(was) };
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
}
