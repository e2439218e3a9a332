import { type AuditEvent, AuditEvent_Outcome } from "@onceward/client/admin";
import { enumName } from "./enum-name.ts";
import { formatMoment } from "./moments.ts";
import type { Column } from "./output.ts";

/** How audit events are listed for people; before and after are in `--json`. */
export const AUDIT_COLUMNS: readonly Column<AuditEvent>[] = [
  ["AT", ({ at }) => formatMoment(at)],
  ["ACTOR", ({ actor }) => actor],
  ["ACTION", ({ action }) => action],
  ["TARGET", ({ target }) => target],
  ["OUTCOME", outcomeOf],
  ["REASON", ({ reason }) => reason],
];

/** Such as "denied ROLE_DENIED (12 calls)". */
function outcomeOf({ outcome, denial, calls }: AuditEvent): string {
  const counted = calls > 1 ? `(${calls} calls)` : "";
  return [enumName(AuditEvent_Outcome, outcome), denial, counted].filter((part) => part !== "").join(" ");
}
