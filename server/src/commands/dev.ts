import { join } from "node:path";
import { digestSecret, parseApiKey } from "../auth/api-key.ts";
import { type Config, readConfig } from "../config.ts";
import type { Role } from "../domain/tenant.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/postgres.ts";
import type { Addresses } from "../server.ts";
import { ensureApiKey } from "../store/api-keys.ts";
import { ensureDatabase } from "../store/databases.ts";
import { migrate } from "../store/migrate.ts";
import { openPool } from "../store/pool.ts";
import { ensureTenant } from "../store/tenants.ts";
import { type DevSecrets, ensureDevSecrets } from "./dev-secrets.ts";
import type { Host } from "./host.ts";
import { serveUntilStopped } from "./serve.ts";

const DATA_DIR = ".onceward";
const DATABASE = "onceward";
const DEMO_TENANT = "demo";

/**
 * `dev`: a replica with everything it needs, on an empty machine: its own Postgres unless `DATABASE_URL` names one, the
 * schema, a demo tenant with two keys, and a banner that says how to call it. What it keeps is under `.onceward/`.
 */
export async function dev(host: Host): Promise<void> {
  // From here on Ctrl-C lets what is being started finish, so that it can be stopped.
  void host.untilStopRequested();
  const dataDir = join(host.workingDir, DATA_DIR);
  const secrets = await ensureDevSecrets(dataDir);
  const embedded = host.env.DATABASE_URL === undefined ? await startEmbedded(host, dataDir) : undefined;
  try {
    const config = readConfig({
      ONCEWARD_API_KEY_PEPPER: secrets.pepper,
      ONCEWARD_LOG_LEVEL: "warn",
      ONCEWARD_DRAIN_DELAY: "0s",
      ...(embedded && { DATABASE_URL: embedded.url(DATABASE) }),
      ...host.env,
    });
    await migrate(config.DATABASE_DIRECT_URL ?? config.DATABASE_URL, () => {});
    await ensureDemoTenant(config, secrets);
    const postgres = embedded ? `PostgreSQL ${embedded.version} in ${DATA_DIR}/` : "DATABASE_URL";
    await serveUntilStopped(host, config, (addresses) => {
      for (const line of banner(config, addresses, secrets, postgres)) host.print(line);
    });
  } finally {
    await embedded?.stop();
  }
  host.print("Stopped; what was claimed is kept for the next start.");
}

async function startEmbedded(host: Host, dataDir: string): Promise<EmbeddedPostgres> {
  host.print("Starting PostgreSQL ...");
  const embedded = await startEmbeddedPostgres({ dataDir: join(dataDir, "postgres") });
  await ensureDatabase(embedded.url("postgres"), DATABASE);
  return embedded;
}

async function ensureDemoTenant(config: Config, secrets: DevSecrets): Promise<void> {
  const pool = openPool(
    { databaseUrl: config.DATABASE_URL, size: 1, throughPgBouncer: config.ONCEWARD_PGBOUNCER },
    { ran: () => {}, connectionLost: () => {} },
  );
  try {
    const tenantId = await ensureTenant(pool, DEMO_TENANT);
    const keys: readonly (readonly [Role, string])[] = [
      ["CALLER", secrets.callerKey],
      ["TENANT_ADMIN", secrets.adminKey],
    ];
    for (const [role, text] of keys) {
      const key = parseApiKey(text);
      if (key === undefined) throw new Error(`${DATA_DIR} holds a key that isn't one; remove the folder`);
      const digest = digestSecret(key.secret, config.ONCEWARD_API_KEY_PEPPER);
      await ensureApiKey(pool, { id: key.id, tenantId, role, digest, namespaces: undefined, label: "demo" });
    }
  } finally {
    await pool.close();
  }
}

function banner(
  config: Config,
  addresses: Addresses,
  secrets: DevSecrets,
  postgres: string,
): readonly string[] {
  const { ONCEWARD_HOST: bound } = config;
  const host = bound.includes(":") ? `[${bound}]` : bound;
  const http = `http://${host}:${addresses.httpPort}`;
  return [
    "",
    "Onceward is serving.",
    "",
    `  gRPC (health, reflection)   ${host}:${addresses.grpcPort}`,
    `  Connect, gRPC-Web, JSON     ${http}`,
    `  livez, readyz, metrics      http://${host}:${addresses.managementPort}`,
    `  Postgres                    ${postgres}`,
    "",
    `  Tenant "${DEMO_TENANT}"`,
    `    caller's key   ${secrets.callerKey}`,
    `    admin's key    ${secrets.adminKey}`,
    "",
    "  Ask whether you may charge order 1; ask again, and somebody is doing it:",
    "",
    `curl -s ${http}/onceward.v1.IdempotencyService/Claim \\`,
    `  -H 'content-type: application/json' -H 'authorization: Bearer ${secrets.callerKey}' \\`,
    `  -d '{"namespace": "charges", "key": "order-1"}'`,
    "",
    "Ctrl-C stops it.",
  ];
}
