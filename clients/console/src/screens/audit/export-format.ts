import { toJson, toJsonString } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import {
  type AuditEvent,
  AuditEvent_Outcome,
  AuditEventSchema,
} from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { csvLine } from "@onceward/words/csv";

/** A file format of the export. */
export type ExportFormat = "csv" | "jsonl";

const HEADINGS = [
  ...["id", "at", "tenant", "actor", "actor_label", "action", "target", "outcome", "denial", "calls"],
  ...["reason", "before", "after", "request_id"],
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
  const { id, at, tenant, actor, actorLabel, action, target, outcome, denial, calls, ...others } = event;
  const json = toJson(AuditEventSchema, event) as { readonly before?: unknown; readonly after?: unknown };
  return [
    String(id),
    at === undefined ? "" : timestampDate(at).toISOString(),
    ...[tenant, actor, actorLabel, action, target],
    outcome === AuditEvent_Outcome.DENIED ? "denied" : "done",
    denial,
    String(calls),
    others.reason,
    ...[json.before, json.after].map((values) => (values === undefined ? "" : JSON.stringify(values))),
    others.requestId,
  ];
}
