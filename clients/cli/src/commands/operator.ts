import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Operator } from "@onceward/client/admin";
import {
  AuditEventSchema,
  CreateTenantApiKeyResponseSchema,
  GetServerInfoResponseSchema,
  ReplicaSchema,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { degradedStates } from "#words/degraded";
import { formatDurationMs } from "#words/durations";
import { createOperator } from "../clients.ts";
import { AUDIT_COLUMNS, REPLICA_COLUMNS } from "../columns.ts";
import type { Host } from "../host.ts";
import { type NewKeyOptions, newKey, withNewKey } from "../new-key.ts";
import { collectPages } from "../pages.ts";
import { createWithSecret } from "../secret-file.ts";
import { type Session, sessions, type WithSession } from "../session.ts";
import { renderFacts } from "../table.ts";
import { type AuditOptions, auditFilter, withAuditFilter } from "./audit.ts";
import { doctorCommand } from "./doctor.ts";
import { command, group, type LimitOption, withAllCells, withLimit } from "./group.ts";
import { operatorKeyCommands } from "./operator-keys.ts";
import { tenantUsageCommand } from "./tenant-usage.ts";
import { tenantsCommands } from "./tenants.ts";

/** Returns `onceward operator …`: the commands of the platform team, with an operator's API key. */
export function operatorCommands(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return group("operator", [
    tenantsCommands(host),
    operatorKeyCommands(host),
    withNewKey(
      command(
        "tenant-key <tenant>",
        "Creates an API key of a tenant and prints its secret, only once.",
        "operator tenant-key acme --role admin --label 'first admin' --out acme-admin.key",
      ),
    ).action(
      asOperator(async ({ client, call, output }, tenant: string, options: NewKeyOptions) => {
        const create = () => client.createTenantApiKey({ tenant, apiKey: newKey(options) }, call);
        await createWithSecret(options.out, output, create, (reply) => {
          output.remark(`Key ${reply.apiKey?.id} of ${tenant}; its secret is shown only now:\n`);
          output.message(CreateTenantApiKeyResponseSchema, reply, () => `${reply.secret}\n`);
        });
      }),
    ),
    allAuditCommand(asOperator),
    doctorCommand(asOperator),
    command(
      "info",
      "Shows the version, state and settings of the replica that answers.",
      "operator info",
      "operator info --json",
    ).action(
      asOperator(async ({ client, call, output }, _options: object) => {
        const info = await client.getServerInfo({}, call);
        output.message(GetServerInfoResponseSchema, info, () =>
          renderFacts([
            ["version", info.version],
            ["replica", info.replicaId],
            ["schema", info.schemaVersion],
            ["replicas", `${info.replicas}`],
            ["degraded", info.degraded.join(", ") || "no"],
            ...Object.entries(info.config)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([name, value]) => [name, settingText(value)] as const),
          ]),
        );
      }),
    ),
    tenantUsageCommand(host),
    withAllCells(
      withLimit(
        command(
          "replicas",
          "Lists the live replicas with their load, whichever of them answers.",
          "operator replicas",
          "operator replicas --all-cells --json",
        ),
      ),
    ).action(asOperator((session, { limit }: LimitOption) => listReplicas(session, limit))),
  ]);
}

function allAuditCommand(asOperator: WithSession<Operator>): Command {
  return withAllCells(
    withAuditFilter(
      command(
        "audit",
        "Lists audit events of all tenants or one, newest first.",
        "operator audit --tenant acme --after 7d",
        "operator audit --action SuspendTenant --json",
      ).option("--tenant <name>", "only events of this tenant"),
    ),
  ).action(
    asOperator(async ({ client, call, output }, options: AuditOptions & { readonly tenant?: string }) => {
      const { limit, tenant = "" } = options;
      const listed = await collectPages(limit, "events", (page) =>
        client.listAuditEvents({ tenant, ...auditFilter(options), ...page }, call),
      );
      output.list(
        AuditEventSchema,
        listed,
        [["TENANT", (event) => event.tenant || "-"], ...AUDIT_COLUMNS],
        ({ at }) => (at ? timestampMs(at) : 0),
      );
    }),
  );
}

/** Returns a setting's value as it is typed: the service names durations in milliseconds. */
function settingText(value: string): string {
  const [, ms] = /^(\d+)ms$/.exec(value) ?? [];
  return ms === undefined ? value : formatDurationMs(Number(ms));
}

async function listReplicas({ client, call, output }: Session<Operator>, limit: number): Promise<void> {
  const listed = await collectPages(limit, "replicas", (page) => client.listReplicas(page, call));
  output.list(ReplicaSchema, listed, REPLICA_COLUMNS);
  for (const { state, meaning, runbook, replicaIds } of degradedStates(listed.items))
    output.remark(`${state} (${replicaIds.join(", ")}): ${meaning} See ${runbook}.\n`);
}
