import { digestSecret, formatApiKey, generateApiKey } from "../auth/api-key.ts";
import { readConfig } from "../config.ts";
import { NAMESPACE_PATTERN } from "../domain/limits.ts";
import type { Role } from "../domain/tenant.ts";
import { ensureApiKey } from "../store/api-keys.ts";
import { openPool, type Pool } from "../store/pool.ts";
import { ensureTenant } from "../store/tenants.ts";
import { readArguments } from "./arguments.ts";
import { CommandError, type Host } from "./host.ts";
import { requireSchema } from "./schema.ts";

/** `operator-key`: makes an operator's API key straight in the database, and prints it, once. */
export async function operatorKey(host: Host): Promise<void> {
  readArguments(host.args, {});
  await printNewKey(host, "OPERATOR", async () => undefined);
}

/**
 * `tenant-key --tenant NAME [--role caller|admin]`: makes a key of a tenant, and the tenant if there is none, straight in
 * the database, and prints it, once.
 */
export async function tenantKey(host: Host): Promise<void> {
  const { tenant = "", role } = readArguments(host.args, {
    tenant: { type: "string" },
    role: { type: "string", default: "caller" },
  });
  if (!NAMESPACE_PATTERN.test(tenant))
    throw new CommandError(`--tenant must match ${NAMESPACE_PATTERN.source}`);
  if (role !== "caller" && role !== "admin") throw new CommandError("--role must be caller or admin");
  await printNewKey(host, role === "admin" ? "TENANT_ADMIN" : "CALLER", (pool) => ensureTenant(pool, tenant));
}

async function printNewKey(
  host: Host,
  role: Role,
  tenantIdIn: (pool: Pool) => Promise<number | undefined>,
): Promise<void> {
  const config = readConfig(host.env);
  await requireSchema(config);
  const pool = openPool({
    databaseUrl: config.DATABASE_URL,
    size: 1,
    throughPgBouncer: config.ONCEWARD_PGBOUNCER,
  });
  try {
    const tenantId = await tenantIdIn(pool);
    const key = generateApiKey();
    const digest = digestSecret(key.secret, config.ONCEWARD_API_KEY_PEPPER);
    await ensureApiKey(pool, {
      id: key.id,
      tenantId,
      role,
      digest,
      namespaces: undefined,
      label: "made by the server's CLI",
    });
    host.print(formatApiKey(key));
  } finally {
    await pool.close();
  }
}
