import type { Principal } from "../domain/tenant.ts";
import { insertAuditEvents, type NewAuditEvent, type Snapshot } from "../store/audit-events.ts";
import type { Runner } from "../store/pool.ts";
import { isOutdated } from "./authority.ts";
import type { Call } from "./call.ts";

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
export async function recordChange(transaction: Runner, call: Call, change: Change): Promise<void> {
  const now = isOutdated(call) ? await call.again() : call;
  await insertAuditEvents(transaction, [auditEvent(now, change)]);
}

/** @param denial the reason of the refusal, if it was refused. */
export function auditEvent(call: Call, change: Change, denial?: string): NewAuditEvent {
  const { action, target, tenant = tenantOf(call.principal), reason = "", before, after } = change;
  const { actor } = call.principal;
  return { tenant, actor, action, target, denial, reason, before, after, requestId: call.requestId };
}

function tenantOf(principal: Principal): { readonly id: number; readonly name: string } | undefined {
  return principal.role === "OPERATOR" ? undefined : principal.tenant;
}
