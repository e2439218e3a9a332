import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { AuditEventSchema, createTenantAdmin } from "@onceward/client/admin";
import type { Command } from "commander";
import { AUDIT_COLUMNS } from "../audit-columns.ts";
import type { Host } from "../host.ts";
import { parsePast } from "../moments.ts";
import { collectPages } from "../pages.ts";
import { sessions } from "../session.ts";
import { command, group, type LimitOption, withLimit } from "./group.ts";

/** What lists of audit events are narrowed by. */
export interface AuditOptions extends LimitOption {
  readonly after?: Timestamp;
  readonly before?: Timestamp;
  readonly action?: string;
}

export function withAuditFilter(made: Command): Command {
  return withLimit(made)
    .option("--after <time>", "later than this", parsePast)
    .option("--before <time>", "earlier than this", parsePast)
    .option("--action <rpc>", "of this RPC, such as ResolveRecord");
}

/** The filter as a request has it. */
export function auditFilter({ after, before, action = "" }: AuditOptions) {
  return { action, ...(after && { after }), ...(before && { before }) };
}

/** `onceward audit …`: what was changed and what was refused. */
export function auditCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("audit", "what was changed in the tenant, and what was refused", [
    withAuditFilter(
      command(
        "list",
        "Lists audit events, the newest first.",
        "audit list --after 24h",
        "audit list --action ResolveRecord --json",
      ),
    ).action(
      asAdmin(async ({ client, call, output }, options: AuditOptions) => {
        const listed = await collectPages(options.limit, async (page) => {
          const request = { ...auditFilter(options), ...page };
          const { events, nextPageToken } = await client.listAuditEvents(request, call);
          return { items: events, nextPageToken };
        });
        output.list(AuditEventSchema, listed, AUDIT_COLUMNS);
      }),
    ),
  ]);
}
