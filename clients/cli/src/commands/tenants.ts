import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { PolicyBoundsSchema, QuotasSchema, type Tenant, TenantSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { addFieldOptions, readFieldOptions } from "../arguments.ts";
import { createOperator } from "../clients.ts";
import { UsageError } from "../failure.ts";
import { confirm, type Host, type YesOption } from "../host.ts";
import { BOUNDS_FIELDS, QUOTA_FIELDS } from "../limit-fields.ts";
import type { Output } from "../output.ts";
import { collectPages } from "../pages.ts";
import { sessions } from "../session.ts";
import { describeLimitEffects, describeTenant, stateName } from "../tenant-text.ts";
import { Moment } from "../times.ts";
import { command, group, type LimitOption, withLimit, withYes } from "./group.ts";

interface ReasonOption {
  readonly reason: string;
}

interface ResumeOptions extends ReasonOption {
  readonly notImported?: true;
}

/** Returns `onceward operator tenants …`. */
export function tenantsCommands(host: Host): Command {
  return group(
    "tenants",
    [
      createCommand(host),
      listCommand(host),
      showCommand(host),
      limitsCommand(host),
      ...stateCommands(host),
      deleteCommand(host),
    ],
    "the service's tenants",
  );
}

function createCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withLimits(
    command(
      "create <tenant>",
      "Creates a tenant.",
      "operator tenants create acme",
      "operator tenants create acme --operations-per-second 500 --live-records 1000000",
    ),
  ).action(
    asOperator(async ({ client, call, output }, name: string, options: object) => {
      const { policyBounds, quotas } = readLimits(options);
      const { tenant } = await client.createTenant({ tenant: { name, policyBounds, quotas } }, call);
      printTenant(output, tenant);
    }),
  );
}

function listCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withLimit(command("list", "Lists all tenants, by name.", "operator tenants list")).action(
    asOperator(async ({ client, call, output }, { limit }: LimitOption) => {
      const listed = await collectPages(limit, async (page) => {
        const { tenants, nextPageToken } = await client.listTenants(page, call);
        return { items: tenants, nextPageToken };
      });
      output.list(TenantSchema, listed, [
        ["TENANT", ({ name }) => name],
        ["STATE", ({ state }) => stateName(state)],
        ["OPERATIONS/S", ({ quotas }) => `${quotas?.operationsPerSecond ?? "unlimited"}`],
        ["LIVE RECORDS", ({ quotas }) => `${quotas?.liveRecords ?? "unlimited"}`],
        ["CREATED", ({ createdAt }) => new Moment(createdAt), "wide"],
      ]);
    }),
  );
}

function showCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return command("show <tenant>", "Shows a tenant.", "operator tenants show acme").action(
    asOperator(async ({ client, call, output }, name: string, _options: object) => {
      const { tenant } = await client.getTenant({ name }, call);
      printTenant(output, tenant);
    }),
  );
}

function limitsCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withLimits(
    command(
      "limits <tenant>",
      "Sets the bounds of a tenant's policies and its quotas. Takes effect on every replica within 10 s.",
      "operator tenants limits acme --operations-per-second 500 --burst 1000",
      "operator tenants limits acme --max-key-retention 30d --stored-bytes none",
      "operator tenants limits acme --operations-per-second 200 --quota-dry-run true",
    ).option("--dry-run", "show the result and what it does to the present use, and change nothing"),
  ).action(
    asOperator(async ({ client, call, output }, name: string, options: { readonly dryRun?: true }) => {
      const { policyBounds, quotas, paths } = readLimits(options);
      if (paths.length === 0) throw new UsageError("Nothing to set: give one of the limits' options.");
      const updateMask = create(FieldMaskSchema, { paths });
      const validateOnly = options.dryRun === true;
      const request = {
        name,
        policyBounds,
        quotas,
        updateMask,
        validateOnly,
      };
      const before = validateOnly ? await client.getTenant({ name }, call) : undefined;
      const { tenant } = await client.updateTenantLimits(request, call);
      printTenant(output, tenant);
      if (before?.tenant === undefined || tenant === undefined || output.isJson) return;
      const { tenants } = await client.listTenantUsage({ tenant: name }, call);
      const usage = tenants.find((each) => each.tenant === name);
      if (usage !== undefined) output.remark(describeLimitEffects(usage, before.tenant, tenant));
    }),
  );
}

function stateCommands(host: Host): Command[] {
  const asOperator = sessions(host, createOperator);
  return [
    withYes(
      command(
        "suspend <tenant>",
        "Refuses a tenant's calls on every replica within 10 s; its records stay.",
        "operator tenants suspend acme --reason 'unpaid since May'",
      ),
    )
      .requiredOption("--reason <text>", "why, for the audit")
      .action(
        asOperator(async ({ client, call, output }, name: string, options: ReasonOption & YesOption) => {
          const { reason } = options;
          await confirm(host, options, `Refuse all calls of tenant ${name}?`, name);
          const { tenant } = await client.suspendTenant({ name, reason }, call);
          printTenant(output, tenant);
        }),
      ),
    command(
      "resume <tenant>",
      "Serves a suspended or a moving tenant again, within 10 s.",
      "operator tenants resume acme --reason 'paid'",
      "operator tenants resume acme --not-imported --reason 'the move was given up'",
    )
      .requiredOption("--reason <text>", "why, for the audit")
      .option("--not-imported", "for a moving tenant: confirm that no other installation has imported it")
      .action(
        asOperator(async ({ client, call, output }, name: string, options: ResumeOptions) => {
          const { reason, notImported = false } = options;
          const { tenant } = await client.resumeTenant({ name, reason, notImported }, call);
          printTenant(output, tenant);
        }),
      ),
  ];
}

function deleteCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withYes(
    command(
      "delete <tenant>",
      "Refuses a tenant's calls permanently, and removes its records in the background.",
      "operator tenants delete acme --reason 'contract ended'",
    ).requiredOption("--reason <text>", "why, for the audit"),
  ).action(
    asOperator(async ({ client, call, output }, name: string, options: ReasonOption & YesOption) => {
      await confirm(host, options, `Delete tenant ${name} and all its records?`, name);
      const { tenant } = await client.deleteTenant({ name, reason: options.reason }, call);
      printTenant(output, tenant);
    }),
  );
}

function withLimits(made: Command): Command {
  return addFieldOptions(addFieldOptions(made, BOUNDS_FIELDS), QUOTA_FIELDS);
}

function readLimits(options: object) {
  const bounds = readFieldOptions(BOUNDS_FIELDS, { ...options });
  const quotas = readFieldOptions(QUOTA_FIELDS, { ...options });
  return {
    policyBounds: create(PolicyBoundsSchema, bounds.init),
    quotas: create(QuotasSchema, quotas.init),
    paths: [
      ...bounds.paths.map((path) => `policy_bounds.${path}`),
      ...quotas.paths.map((path) => `quotas.${path}`),
    ],
  };
}

function printTenant(output: Output, tenant: Tenant | undefined): void {
  if (tenant !== undefined) output.message(TenantSchema, tenant, () => describeTenant(tenant));
}
