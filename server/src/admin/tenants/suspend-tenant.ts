import { create } from "@bufbuild/protobuf";
import type { Call } from "../../access/call.ts";
import { updateTenant } from "../../database/tenants/tenants.ts";
import { invalidRequest } from "../../domain/refusal.ts";
import {
  ResumeTenantResponseSchema,
  SuspendTenantResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import type { AdministrationParts, OperatorRpc } from "../services.ts";
import { checkNameAndReason, lockKeptTenant } from "./locked-tenant.ts";
import { tenantMessage } from "./tenant-messages.ts";

/** Refuses a tenant's calls until it is resumed. */
export const suspendTenant: OperatorRpc<"suspendTenant"> = async (request, call, parts) => {
  const change = { ...request, action: "SuspendTenant", state: "SUSPENDED", notImported: false } as const;
  return create(SuspendTenantResponseSchema, await changeState(parts, call, change));
};

/** Serves a tenant's calls again. */
export const resumeTenant: OperatorRpc<"resumeTenant"> = async (request, call, parts) => {
  const change = { ...request, action: "ResumeTenant", state: "ACTIVE" } as const;
  return create(ResumeTenantResponseSchema, await changeState(parts, call, change));
};

/** A request to suspend or to resume a tenant. */
interface StateChange {
  readonly action: string;
  readonly name: string;
  readonly reason: string;
  readonly state: "ACTIVE" | "SUSPENDED";
  readonly notImported: boolean;
}

/** Suspends or resumes a tenant, with an audit event, unless it has that state already. Returns the tenant's message. */
async function changeState({ pool, changes }: AdministrationParts, call: Call, change: StateChange) {
  checkNameAndReason(change);
  const { action, name, reason, state } = change;
  const tenant = await pool.transaction(async (transaction) => {
    const was = await lockKeptTenant(transaction, name);
    if (was.state === state) return was;
    if (was.state === "MOVING") checkMoving(change);
    await recordChange(transaction, call, {
      action,
      target: `tenant ${was.name}`,
      tenant: was,
      reason,
      before: { state: was.state },
      after: { state },
    });
    return updateTenant(transaction, { ...was, state });
  });
  changes.tenantChanged(tenant.id);
  return { tenant: tenantMessage(tenant) };
}

/**
 * Checks a change of a moving tenant. Suspending it would end its move, and a later resumption would need no
 * confirmation.
 *
 * @throws Refusal INVALID_REQUEST.
 */
function checkMoving({ state, notImported }: StateChange): void {
  if (state === "SUSPENDED") {
    throw invalidRequest("name", "names a tenant that is moving: its calls are refused already");
  }
  if (!notImported) {
    throw invalidRequest(
      "not_imported",
      "must be true for a tenant that is moving: if another installation has imported it, both would grant the same keys",
    );
  }
}
