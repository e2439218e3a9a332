import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { AuditEvent_Outcome } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { actionOf } from "@onceward/words/audit-actions";
import { commandLine } from "../../format/command.ts";
import { timestampOf } from "../../parts/filter-bar.tsx";
import { type Role, useSession } from "../../session/session.ts";

/** The filters of the list, as the address names them. `tenant` is the operator's. */
export const FILTERS = [
  ...["tenant", "actor", "action", "target", "outcome", "signins", "after", "before"],
] as const;

/** The filters of the address; "" where there is none. */
export type Filters = Readonly<Record<(typeof FILTERS)[number], string>>;

const OUTCOMES: ReadonlyMap<string, AuditEvent_Outcome> = new Map([
  ["done", AuditEvent_Outcome.DONE],
  ["denied", AuditEvent_Outcome.DENIED],
]);

/** Returns the request of a list's page, the operator's. */
export function requestOf({ tenant, actor, action, target, outcome, signins, after, before }: Filters) {
  const from = timestampOf(after);
  const to = timestampOf(before);
  return {
    ...{
      tenant,
      actor,
      action: actionOf(action) ?? action,
      target,
      outcome: OUTCOMES.get(outcome) ?? AuditEvent_Outcome.UNSPECIFIED,
      // An action that is chosen is shown in any case.
      withoutSignIns: signins === "" && action === "",
    },
    ...(from && { after: from }),
    ...(to && { before: to }),
  };
}

/** Returns the list of events of the session's role, newest first. That of operators has one filter more, which the other one skips. */
export function useEventList() {
  const { role } = useSession();
  const { method } = role === "OPERATOR" ? OperatorService : TenantAdminService;
  return method.listAuditEvents as typeof OperatorService.method.listAuditEvents;
}

/** Returns the command that lists the same events. */
export function commandOf(filters: Filters, role: Role): string {
  const { tenant, actor, target, outcome, after, before } = filters;
  const action = actionOf(filters.action) ?? filters.action;
  const { withoutSignIns } = requestOf(filters);
  const options = { actor, action, target, outcome, after, before };
  const line =
    role === "OPERATOR"
      ? commandLine("onceward operator audit", { tenant, ...options })
      : commandLine("onceward audit list", options);
  return withoutSignIns ? `${line} --without-sign-ins` : line;
}
