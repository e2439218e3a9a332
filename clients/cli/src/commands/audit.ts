import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { AuditEvent_Outcome, AuditEventSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { parseAction } from "../audit-actions.ts";
import { choiceOption, choicesOf } from "../choices.ts";
import { createTenantAdmin } from "../clients.ts";
import { AUDIT_COLUMNS } from "../columns.ts";
import type { Host } from "../host.ts";
import { collectPages } from "../pages.ts";
import { sessions } from "../session.ts";
import { parsePast } from "../times.ts";
import { command, group, type LimitOption, withLimit } from "./group.ts";

/** The options that filter audit events. */
export interface AuditOptions extends LimitOption {
  readonly after?: Timestamp;
  readonly before?: Timestamp;
  readonly action?: string;
  readonly actor?: string;
  readonly target?: string;
  readonly outcome?: AuditEvent_Outcome;
  readonly withoutSignIns?: true;
}

export function withAuditFilter(made: Command): Command {
  return withLimit(made)
    .option("--after <time>", "only events after this time", parsePast)
    .option("--before <time>", "only events before this time", parsePast)
    .option("--action <action>", "only events of this action, such as ResolveRecord", parseAction)
    .option("--actor <id>", "only events of this API key's id, or of this token's subject")
    .option("--target <resource>", "only events of this resource, such as 'namespace charges'")
    .option("--without-sign-ins", "leave out the beginnings and ends of the console's sessions")
    .addOption(
      choiceOption("--outcome <outcome>", "only changes of this outcome", choicesOf(AuditEvent_Outcome)),
    );
}

/** Returns the filter fields of a request. */
export function auditFilter(options: AuditOptions) {
  const { after, before, action = "", actor = "", target = "", outcome, withoutSignIns = false } = options;
  return {
    withoutSignIns,
    action,
    actor,
    target,
    ...(outcome && { outcome }),
    ...(after && { after }),
    ...(before && { before }),
  };
}

/** Returns `onceward audit …`. */
export function auditCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("audit", [
    withAuditFilter(
      command(
        "list",
        "Lists audit events, the newest first.",
        "audit list --after 24h",
        "audit list --action ResolveRecord --json",
        "audit list --outcome denied --actor 7k2m9q4x1c8v5b3n",
      ),
    ).action(
      asAdmin(async ({ client, call, output }, options: AuditOptions) => {
        const listed = await collectPages(options.limit, "events", (page) =>
          client.listAuditEvents({ ...auditFilter(options), ...page }, call),
        );
        output.list(AuditEventSchema, listed, AUDIT_COLUMNS);
      }),
    ),
  ]);
}
