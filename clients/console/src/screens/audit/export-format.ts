import { toJson, toJsonString } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import {
  type AuditEvent,
  AuditEvent_Outcome,
  AuditEventSchema,
} from "@onceward/gen/onceward/v1/tenant_pb.ts";

/** A file format of the export. */
export type ExportFormat = "csv" | "jsonl";

const HEADINGS = [
  ...["id", "at", "tenant", "actor", "action", "target", "outcome", "denial", "calls", "reason"],
  ...["before", "after", "request_id"],
] as const;

/** Returns a file of events: comma-separated values with a line of headings, or a JSON object on each line. */
export function exportText(format: ExportFormat, events: readonly AuditEvent[]): string {
  switch (format) {
    case "csv":
      return [HEADINGS, ...events.map(cellsOf)].map(csvLine).join("");
    case "jsonl":
      return events.map((event) => `${toJsonString(AuditEventSchema, event)}\n`).join("");
    default:
      return format satisfies never;
  }
}

function cellsOf(event: AuditEvent): readonly string[] {
  const { id, at, tenant, actor, action, target, outcome, denial, calls, reason, requestId } = event;
  const json = toJson(AuditEventSchema, event) as { readonly before?: unknown; readonly after?: unknown };
  return [
    String(id),
    at === undefined ? "" : timestampDate(at).toISOString(),
    ...[tenant, actor, action, target],
    outcome === AuditEvent_Outcome.DENIED ? "denied" : "done",
    denial,
    String(calls),
    reason,
    ...[json.before, json.after].map((values) => (values === undefined ? "" : JSON.stringify(values))),
    requestId,
  ];
}

/** Returns a line of RFC 4180: cells with a comma, a quote or a line break are quoted, and it ends with CRLF. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map((cell) => quoted(defused(cell))).join(",")}\r\n`;
}

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/**
 * Returns a cell that no spreadsheet takes for a formula: an apostrophe is put before the characters that begin one.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
function defused(cell: string): string {
  return /^[=+\-@\t\r\n]/.test(cell) ? `'${cell}` : cell;
}
