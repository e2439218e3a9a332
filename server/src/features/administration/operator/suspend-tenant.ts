import { create } from "@bufbuild/protobuf";
import type { Call } from "../../../core/calls/call.ts";
import type { TenantResource } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import { updateTenant } from "../../../core/store/tenants/tenants.ts";
import {
  ResumeTenantResponseSchema,
  SuspendTenantResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, OperatorRpcs } from "../services.ts";
import { tenantMessage } from "../tenant-messages.ts";
import { checkNameAndReason, lockKeptTenant } from "./tenant-requests.ts";

/** Returns the RPCs that suspend a tenant, and resume it. */
export function createSuspendTenant({
  pool,
  changes,
}: AdministrationParts): OperatorRpcs<"suspendTenant" | "resumeTenant"> {
  async function changeState(
    action: string,
    state: "ACTIVE" | "SUSPENDED",
    request: { readonly name: string; readonly reason: string; readonly notImported?: boolean },
    call: Call,
  ): Promise<TenantResource> {
    checkNameAndReason(request);
    const tenant = await pool.transaction(async (transaction) => {
      const was = await lockKeptTenant(transaction, request.name);
      if (was.state === state) return was;
      if (was.state === "MOVING") checkMoving(state, request);
      await recordChange(transaction, call, {
        action,
        target: `tenant ${was.name}`,
        tenant: was,
        reason: request.reason,
        before: { state: was.state },
        after: { state },
      });
      return updateTenant(transaction, { ...was, state });
    });
    changes.tenantChanged(tenant.id);
    return tenant;
  }

  return {
    async suspendTenant(request, call) {
      const tenant = await changeState("SuspendTenant", "SUSPENDED", request, call);
      return create(SuspendTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },

    async resumeTenant(request, call) {
      const tenant = await changeState("ResumeTenant", "ACTIVE", request, call);
      return create(ResumeTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },
  };
}

/**
 * Checks a change of a moving tenant. Suspending it would end its move, and a later resumption would need no
 * confirmation.
 *
 * @throws Refusal INVALID_REQUEST.
 */
function checkMoving(
  state: "ACTIVE" | "SUSPENDED",
  { notImported = false }: { readonly notImported?: boolean },
): void {
  const violations = new Violations();
  if (state === "SUSPENDED") {
    violations.add("name", "names a tenant that is moving: its calls are refused already");
  } else if (!notImported) {
    violations.add(
      "not_imported",
      "must be true for a tenant that is moving: if another installation has imported it, both would grant the same keys",
    );
  }
  violations.throwIfAny();
}
