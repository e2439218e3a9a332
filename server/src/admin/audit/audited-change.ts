import { isOutdated } from "../../access/authority.ts";
import type { Actor } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { insertAuditEvents, type Snapshot } from "../../database/tenants/audit-events.ts";

/** The parts of an audit event that describe a change. */
export interface Change {
  /** The RPC's name. */
  readonly action: string;
  /** The changed resource, such as "namespace charges". */
  readonly target: string;
  /** The tenant that the change concerns; undefined: the caller's own tenant, or none for an operator. */
  readonly tenant?: { readonly id: number; readonly name: string };
  readonly reason?: string;
  readonly before?: Snapshot;
  readonly after?: Snapshot;
}

/**
 * Stores the audit event of a change, in the transaction of the change. If the call's principal has expired, the call is
 * authorized again first: a refusal rolls the transaction back.
 *
 * @throws Refusal as for a new call.
 */
export async function recordChange(transaction: Runner, by: Actor, change: Change): Promise<void> {
  const { principal } = isOutdated(by) ? await by.again() : by;
  const { actor } = principal;
  const { tenant = principal.role === "OPERATOR" ? undefined : principal.tenant } = change;
  await insertAuditEvents(transaction, [{ ...change, tenant, actor, requestId: by.requestId, calls: 1 }]);
}
