import { isOutdated } from "../calls/authority.ts";
import type { Actor } from "../calls/call.ts";
import type { Principal } from "../domain/tenant.ts";
import type { Runner } from "../store/pool.ts";
import { insertAuditEvents, type Snapshot } from "../store/tenants/audit-events.ts";

/** What an audit event says of a change, beside who made it. */
export interface Change {
  /** The RPC's name. */
  readonly action: string;
  /** What it was done to, such as "namespace charges". */
  readonly target: string;
  /** Whose affair it is; undefined: the caller's own tenant, or none. */
  readonly tenant?: { readonly id: number; readonly name: string };
  readonly reason?: string;
  readonly before?: Snapshot;
  readonly after?: Snapshot;
}

/**
 * Writes down who changed what, in the transaction of the change. A call that waited so long that it is outdated is judged
 * again first: a refusal ends the transaction.
 *
 * @throws Refusal as a call is refused that comes now.
 */
export async function recordChange(transaction: Runner, by: Actor, change: Change): Promise<void> {
  const { principal } = isOutdated(by) ? await by.again() : by;
  const { action, target, tenant = tenantOf(principal), reason = "", before, after } = change;
  const { actor } = principal;
  const { requestId } = by;
  await insertAuditEvents(transaction, [
    { tenant, actor, action, target, denial: undefined, reason, before, after, requestId, calls: 1 },
  ]);
}

function tenantOf(principal: Principal): { readonly id: number; readonly name: string } | undefined {
  return principal.role === "OPERATOR" ? undefined : principal.tenant;
}
