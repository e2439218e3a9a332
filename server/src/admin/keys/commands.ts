import { randomUUID } from "node:crypto";
import type { Actor } from "../../access/call.ts";
import { readArguments } from "../../commands/arguments.ts";
import { CommandError, type Host } from "../../commands/host.ts";
import { requirePepper } from "../../commands/pepper.ts";
import { requireSchema } from "../../commands/schema.ts";
import { withPool } from "../../commands/with-pool.ts";
import { readConfig } from "../../config/config.ts";
import type { Runner } from "../../database/pool.ts";
import { insertTenant, lockTenant } from "../../database/tenants/tenants.ts";
import { NAMESPACE_PATTERN, NAMESPACE_RULE } from "../../domain/limits.ts";
import { NO_QUOTAS } from "../../domain/quotas.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import { recordChange } from "../audit/audited-change.ts";
import { type ApiKeyTerms, makeApiKey } from "./create-api-key.ts";

/** `operator-key`: creates an operator's API key directly in the database and prints it, once. */
export async function operatorKey(host: Host): Promise<void> {
  readArguments(host.args, {});
  await printNewKey(host, "CreateOperatorApiKey", "OPERATOR", undefined);
}

/**
 * `tenant-key --tenant NAME [--role caller|admin]`: creates an API key of a tenant directly in the database,
 * and the tenant if it does not exist, and prints the key, once.
 */
export async function tenantKey(host: Host): Promise<void> {
  const { tenant = "", role } = readArguments(host.args, {
    tenant: { type: "string" },
    role: { type: "string", default: "caller" },
  });
  if (!NAMESPACE_PATTERN.test(tenant)) throw new CommandError(`--tenant ${NAMESPACE_RULE}`);
  if (role !== "caller" && role !== "admin") throw new CommandError("--role must be caller or admin");
  await printNewKey(host, "CreateTenantApiKey", role === "admin" ? "TENANT_ADMIN" : "CALLER", tenant);
}

/**
 * @param action the RPC with the same effect, for the audit.
 * @param name the tenant's; undefined: an operator's key.
 */
async function printNewKey(
  host: Host,
  action: string,
  role: ApiKeyTerms["role"],
  name: string | undefined,
): Promise<void> {
  const config = readConfig(host.env);
  await requireSchema(config);
  await requirePepper(config);
  const pepper = config.ONCEWARD_API_KEY_PEPPER;
  const terms = { role, label: "made by the server's CLI", namespaces: undefined, expiresAtMs: undefined };
  await withPool(config, async (pool) => {
    const { secret } = await pool.transaction(async (transaction) => {
      const tenant = name === undefined ? undefined : await ensureTenant(transaction, name);
      return makeApiKey(transaction, COMMAND, { action, tenant, terms, pepper });
    });
    host.print(secret);
  });
}

/** The actor of commands in the audit. Commands need no credential but the database's. */
const COMMAND: Actor = {
  principal: { role: "OPERATOR", actor: "onceward-server", goodUntilMs: Number.POSITIVE_INFINITY },
  requestId: randomUUID(),
  again() {
    throw new Error("a command is not authorised again");
  },
};

/** Locks the tenant of that name, or creates it. */
async function ensureTenant(transaction: Runner, name: string): Promise<TenantResource> {
  const made = await insertTenant(transaction, { name, policy: {}, bounds: {}, quotas: NO_QUOTAS });
  if (made !== undefined) {
    await recordChange(transaction, COMMAND, {
      action: "CreateTenant",
      target: `tenant ${name}`,
      tenant: made,
    });
    return made;
  }
  const tenant = await lockTenant(transaction, name);
  if (tenant === undefined || tenant.state === "DELETING") {
    throw new CommandError(`tenant ${name} is being deleted`);
  }
  if (tenant.state === "MOVING") throw new CommandError(`tenant ${name} is moving to another installation`);
  return tenant;
}
