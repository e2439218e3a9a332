import { type AuditEvent, AuditEvent_Outcome, OperatorService } from "@onceward/client/proto";

/** The actions of audit events that are not RPCs: the console's sessions, and commands of the server. */
export const ACTIONS_WITHOUT_RPC: readonly string[] = [
  "SignIn",
  "SignOut",
  "SignOutEverywhere",
  "ExportTenant",
  "ImportTenant",
  "RenewInstallation",
];

const OF_OPERATORS: ReadonlySet<string> = new Set(OperatorService.methods.map(({ name }) => name));

/** Returns whether an operator made the change of an event: a tenant's keys may not. */
export function isByOperator({ action, outcome }: Pick<AuditEvent, "action" | "outcome">): boolean {
  return outcome === AuditEvent_Outcome.DONE && OF_OPERATORS.has(action);
}
