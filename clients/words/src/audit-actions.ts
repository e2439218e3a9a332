import {
  type AuditEvent,
  AuditEvent_Outcome,
  IdentityService,
  OperatorService,
  TenantAdminService,
} from "@onceward/client/proto";

/** The actions of audit events that are not RPCs: the console's sessions, and commands of the server. */
const ACTIONS_WITHOUT_RPC: readonly string[] = [
  "SignIn",
  "SignOut",
  "SignOutEverywhere",
  "ExportTenant",
  "ImportTenant",
  "RenewInstallation",
];

/** The calls of services, whose descriptors the console does not load. */
export const CALLER_ACTIONS: readonly string[] = [
  ...["Claim", "Complete", "Release", "ExtendLease", "Lookup", "Batch", "BatchStream"],
];

/** Every action, sorted. A refused call is audited as well, so the name of any RPC can be one. */
export const ACTIONS: readonly string[] = [
  ...new Set([
    ...[TenantAdminService, OperatorService, IdentityService].flatMap(({ methods }) =>
      methods.map(({ name }) => name),
    ),
    ...CALLER_ACTIONS,
    ...ACTIONS_WITHOUT_RPC,
  ]),
].sort();

/** Returns the action that a text names, in any case; "" for none. Undefined: there is no such action. */
export function actionOf(text: string): string | undefined {
  const typed = text.toLowerCase();
  return typed === "" ? "" : ACTIONS.find((action) => action.toLowerCase() === typed);
}

const OF_OPERATORS: ReadonlySet<string> = new Set(OperatorService.methods.map(({ name }) => name));

/** Returns whether an operator made the change of an event: a tenant's keys may not. */
export function isByOperator({ action, outcome }: Pick<AuditEvent, "action" | "outcome">): boolean {
  return outcome === AuditEvent_Outcome.DONE && OF_OPERATORS.has(action);
}
