import { renewInstallation } from "../store/installation.ts";
import type { Connection } from "../store/pool.ts";
import { insertAuditEvents } from "../store/tenants/audit-events.ts";

/** A renewal of the installation. */
export interface Renewal {
  /** The id to replace. */
  readonly knownId: string;
  /** The floor of fencing tokens that the replica knows. */
  readonly knownFloor: number;
  readonly actor: string;
  readonly reason: string;
  /** The request id of the audit event. */
  readonly requestId: string;
}

/**
 * Replaces the installation's id, raises floor and sequences as `renewInstallation` does, and writes an audit
 * event. Returns false if another call replaced the known id first.
 */
export function renew(database: Connection, renewal: Renewal): Promise<boolean> {
  const { knownId, knownFloor, actor, reason, requestId } = renewal;
  return database.transaction(async (transaction) => {
    if (!(await renewInstallation(transaction, knownId, knownFloor))) return false;
    await insertAuditEvents(transaction, [
      {
        tenant: undefined,
        actor,
        action: "RenewInstallation",
        target: "installation",
        denial: undefined,
        reason,
        before: undefined,
        after: undefined,
        requestId,
        calls: 1,
      },
    ]);
    return true;
  });
}
