import { create } from "@bufbuild/protobuf";
import type { Call } from "../../access/call.ts";
import { updateTenant } from "../../database/tenants/tenants.ts";
import { MAX_ADDRESS_BYTES } from "../../domain/limits.ts";
import { invalidRequest } from "../../domain/refusal.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import {
  RedirectTenantResponseSchema,
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

/** Has refusals of the calls of a tenant that has moved name the address at which it is served. */
export const redirectTenant: OperatorRpc<"redirectTenant"> = async (request, call, parts) => {
  const violations = new Violations();
  const movedTo = request.address === "" ? undefined : originOf(request.address, violations);
  const change = { ...request, action: "RedirectTenant", state: "MOVING", notImported: false } as const;
  return create(
    RedirectTenantResponseSchema,
    await changeState(parts, call, { ...change, movedTo }, violations),
  );
};

/** Returns the origin of a URL as clients accept them; undefined: a violation was added. */
function originOf(address: string, violations: Violations): string | undefined {
  const url = URL.parse(address);
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) {
    if (url.origin.length <= MAX_ADDRESS_BYTES) return url.origin;
  }
  violations.add("address", "must be a URL such as https://onceward-2.example:50051, without a path");
  return undefined;
}

/** A request to suspend, to resume or to redirect a tenant. */
interface StateChange {
  readonly action: string;
  readonly name: string;
  readonly reason: string;
  readonly state: "ACTIVE" | "SUSPENDED" | "MOVING";
  readonly notImported: boolean;
  readonly movedTo?: string | undefined;
}

/** Changes the state of a tenant, with an audit event, unless it has that state already. Returns the tenant's message. */
async function changeState(
  { pool, changes }: AdministrationParts,
  call: Call,
  change: StateChange,
  violations = new Violations(),
) {
  checkNameAndReason(change, violations);
  const { action, name, reason, state, movedTo } = change;
  const tenant = await pool.transaction(async (transaction) => {
    const was = await lockKeptTenant(transaction, name);
    // A tenant that is not moving has no address to take back.
    const isSame = was.state === state || (state === "MOVING" && movedTo === undefined);
    if (isSame && was.movedTo === movedTo) return was;
    if (was.state === "MOVING") checkMoving(change, was);
    else if (state === "MOVING") throw invalidRequest("address", "is for a moving tenant: export it first");
    await recordChange(transaction, call, {
      action,
      target: `tenant ${was.name}`,
      tenant: was,
      reason,
      before: { state: was.state, movedTo: was.movedTo },
      after: { state, movedTo },
    });
    return updateTenant(transaction, { ...was, state, movedTo });
  });
  changes.tenantChanged(tenant.id);
  return { tenant: tenantMessage(tenant) };
}

/**
 * Checks a change of a moving tenant. Suspending it would end its move, and a later resumption would need no
 * confirmation; callers that follow a redirection claim keys elsewhere.
 *
 * @throws Refusal INVALID_REQUEST.
 */
function checkMoving({ state, notImported }: StateChange, { movedTo }: TenantResource): void {
  if (state === "SUSPENDED") {
    throw invalidRequest("name", "names a tenant that is moving: its calls are refused already");
  }
  if (state === "ACTIVE" && !notImported) {
    throw invalidRequest(
      "not_imported",
      "must be true for a tenant that is moving: if another installation has imported it, both would grant the same keys",
    );
  }
  if (state === "ACTIVE" && movedTo !== undefined) {
    throw invalidRequest(
      "not_imported",
      `contradicts the tenant's redirection to ${movedTo}, where its callers are served: take that back first`,
    );
  }
}
