import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { Operator } from "@onceward/client/admin";
import { PolicyBoundsSchema, QuotasSchema, type Tenant, TenantSchema } from "@onceward/client/proto";
import { type Command, InvalidArgumentError } from "commander";
import {
  REDIRECT_TENANT,
  RESUME_MOVING,
  STOP_REDIRECTING,
  TENANT_CHANGES,
  type TenantChange,
} from "#words/changes";
import { addFieldOptions, readFieldOptions } from "../arguments.ts";
import { createOperator } from "../clients.ts";
import { confirm, type YesOption } from "../confirm.ts";
import { UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { BOUNDS_FIELDS, QUOTA_FIELDS } from "../limit-fields.ts";
import type { Output } from "../output.ts";
import { collectPages } from "../pages.ts";
import { type Session, sessions } from "../session.ts";
import { describeLimitChange, describeTenant, stateName } from "../tenant-text.ts";
import { Moment } from "../times.ts";
import { command, group, type LimitOption, withAllCells, withLimit, withYes } from "./group.ts";

interface StateOptions extends YesOption {
  readonly reason: string;
  readonly notImported?: true;
  readonly to?: string;
}

/** Returns `onceward operator tenants …`. */
export function tenantsCommands(host: Host): Command {
  return group(
    "tenants",
    [createCommand(host), listCommand(host), showCommand(host), limitsCommand(host), ...stateCommands(host)],
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
  const made = command(
    "list",
    "Lists all tenants, by name.",
    "operator tenants list",
    "operator tenants list --all-cells",
  );
  return withAllCells(withLimit(made)).action(
    asOperator(async ({ client, call, output }, { limit }: LimitOption) => {
      const listed = await collectPages(limit, "tenants", (page) => client.listTenants(page, call));
      output.list(
        TenantSchema,
        listed,
        [
          ["TENANT", ({ name }) => name],
          ["STATE", ({ state }) => stateName(state)],
          ["OPERATIONS/S", ({ quotas }) => `${quotas?.operationsPerSecond ?? "unlimited"}`],
          ["LIVE RECORDS", ({ quotas }) => `${quotas?.liveRecords ?? "unlimited"}`],
          ["CREATED", ({ createdAt }) => new Moment(createdAt), "wide"],
        ],
        ({ name }) => name,
      );
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
  return withYes(
    withLimits(
      command(
        "limits <tenant>",
        "Sets the bounds of a tenant's policies and its quotas. Shows what they do to the present use, and asks. Takes effect on every replica within 10 s.",
        "operator tenants limits acme --operations-per-second 500 --burst 1000",
        "operator tenants limits acme --max-key-retention 30d --stored-bytes none --yes",
        "operator tenants limits acme --operations-per-second 200 --quota-dry-run true --dry-run",
      ).option("--dry-run", "show the effect, and change nothing"),
    ),
  ).action(asOperator((session, name: string, options: LimitsOptions) => setLimits(session, name, options)));
}

interface LimitsOptions extends YesOption {
  readonly dryRun?: true;
}

/** Shows the effect of new limits, asks, and sets them, unless the limits were changed in the meantime. */
async function setLimits(session: Session<Operator>, name: string, options: LimitsOptions): Promise<void> {
  const { client, call, output } = session;
  const { policyBounds, quotas, paths } = readLimits(options);
  if (paths.length === 0) throw new UsageError("Nothing to set: give one of the limits' options.");
  const { tenant: before } = await client.getTenant({ name }, call);
  if (before === undefined) return;
  const update = async (validateOnly: boolean) => {
    const updateMask = create(FieldMaskSchema, { paths });
    const request = { name, policyBounds, quotas, updateMask, validateOnly, etag: before.etag };
    return (await client.updateTenantLimits(request, call)).tenant ?? before;
  };
  const after = await update(true);
  const { tenants } = await client.listTenantUsage({ tenant: name }, call);
  const usage = tenants.find((each) => each.tenant === name);
  const { text: effect, refuses } = describeLimitChange(usage, before, after);
  if (options.dryRun) return output.message(TenantSchema, after, () => effect);
  const question = `Set the limits of ${name}?`;
  await confirm(session, options, { effect, question, typed: refuses ? name : undefined });
  const done = await update(false);
  output.message(
    TenantSchema,
    done,
    () => `Set the limits of tenant ${name}; every replica follows within 10 s.\n`,
  );
}

function stateCommands(host: Host): Command[] {
  return [
    stateCommand(
      host,
      TENANT_CHANGES.suspend,
      command(
        "suspend <tenant>",
        "Refuses a tenant's calls on every replica within 10 s; its records stay.",
        "operator tenants suspend acme --reason 'unpaid since May'",
      ),
      (client, { name, reason }, call) => client.suspendTenant({ name, reason }, call),
    ),
    stateCommand(
      host,
      TENANT_CHANGES.resume,
      command(
        "resume <tenant>",
        "Serves a suspended or a moving tenant again, within 10 s.",
        "operator tenants resume acme --reason 'paid'",
        "operator tenants resume acme --not-imported --reason 'the move was given up'",
      ).option("--not-imported", "for a moving tenant: confirm that no other installation has imported it"),
      (client, { name, reason, notImported }, call) =>
        client.resumeTenant({ name, reason, notImported }, call),
    ),
    stateCommand(
      host,
      REDIRECT_TENANT,
      command(
        "redirect <tenant>",
        "Tells the callers of a tenant that has moved where it is served; they follow.",
        "operator tenants redirect acme --to https://onceward-2.example:50051 --reason 'moved'",
      ).requiredOption("--to <url>", "the new installation's gRPC port, or none", parseAddress),
      (client, { name, reason, to }, call) => client.redirectTenant({ name, reason, address: to }, call),
    ),
    stateCommand(
      host,
      TENANT_CHANGES.delete,
      command(
        "delete <tenant>",
        "Refuses a tenant's calls permanently, and removes its records in the background.",
        "operator tenants delete acme --reason 'contract ended'",
      ),
      (client, { name, reason }, call) => client.deleteTenant({ name, reason }, call),
    ),
  ];
}

/** Parses the address of a redirection; "": none. A script's empty variable is a mistake. @throws InvalidArgumentError. */
function parseAddress(text: string): string {
  if (text !== "") return text === "none" ? "" : text;
  throw new InvalidArgumentError("It must be a URL, or none.");
}

/** Sends a change of a tenant's state. */
type SendChange = (
  client: Operator,
  request: Readonly<Record<"name" | "reason" | "to", string>> & { readonly notImported: boolean },
  call: CallOptions,
) => Promise<{ readonly tenant?: Tenant | undefined }>;

/** Makes the command of a change of a tenant's state: it says what follows, and asks for the tenant's name. */
function stateCommand(host: Host, change: TenantChange, made: Command, send: SendChange): Command {
  const asOperator = sessions(host, createOperator);
  return withYes(made.requiredOption("--reason <text>", "why, for the audit")).action(
    asOperator(async (session, name: string, options: StateOptions) => {
      const { client, call, output } = session;
      const { reason, notImported = false, to = "" } = options;
      const { action, effect: always, done } = options.to === "" ? STOP_REDIRECTING : change;
      const effect = notImported ? `${always}\n${RESUME_MOVING}` : always;
      await confirm(session, options, { effect, question: `${action} the tenant ${name}?`, typed: name });
      const { tenant } = await send(client, { name, reason, notImported, to }, call);
      if (tenant === undefined) return;
      output.message(
        TenantSchema,
        tenant,
        () =>
          `${done} the tenant ${name}: it is ${stateName(tenant.state)}. Every replica follows within 10 s.\n`,
      );
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
