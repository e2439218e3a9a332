import { renewInstallation } from "../store/installation.ts";
import type { Connection } from "../store/pool.ts";
import { insertAuditEvents } from "../store/tenants/audit-events.ts";

/** Who renews an installation, and why. */
export interface Renewal {
  /** The id to be replaced. */
  readonly knownId: string;
  /** No fencing token up to this one is given out any more. */
  readonly tokenFloor: bigint;
  readonly actor: string;
  readonly reason: string;
  /** Under which the log has it. */
  readonly requestId: string;
}

/**
 * Gives the installation another id and raises its sequences, as `renewInstallation`; the audit tells of it. False: another
 * call replaced the known id first.
 */
export function renew(database: Connection, renewal: Renewal): Promise<boolean> {
  const { knownId, tokenFloor, actor, reason, requestId } = renewal;
  return database.transaction(async (transaction) => {
    if (!(await renewInstallation(transaction, knownId, tokenFloor))) return false;
    await insertAuditEvents(transaction, [
      {
        tenant: undefined,
        actor,
        action: "AfterRestore",
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
