import { join } from "node:path";
import { digestSecret, parseApiKey } from "../auth/api-key.ts";
import { type Config, readConfig } from "../config.ts";
import type { Role } from "../domain/tenant.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/postgres.ts";
import type { Addresses } from "../server.ts";
import { ensureApiKey } from "../store/api-keys.ts";
import { ensureDatabase } from "../store/databases.ts";
import { openPool } from "../store/pool.ts";
import { ensureTenant } from "../store/tenants.ts";
import { type DevSecrets, ensureDevSecrets } from "./dev-secrets.ts";
import type { Host } from "./host.ts";
import { runMigrations } from "./schema.ts";
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
  let stopping = false;
  void host.untilStopRequested().then(() => {
    stopping = true;
  });
  const dataDir = join(host.workingDir, DATA_DIR);
  const secrets = await ensureDevSecrets(dataDir);
  const env = { ...defaults(secrets), ...withoutEmpty(host.env) };
  const embedded =
    env.DATABASE_URL === undefined ? await startEmbedded(host, dataDir, () => stopping) : undefined;
  try {
    if (!stopping) await serveDemo(host, env, secrets, embedded);
  } finally {
    await embedded?.stop();
  }
  host.print("Stopped; what was claimed is kept for the next start.");
}

/** Undefined: Ctrl-C was pressed meanwhile, which a terminal also sends to what we have just started, such as initdb. */
async function startEmbedded(
  host: Host,
  dataDir: string,
  stopping: () => boolean,
): Promise<EmbeddedPostgres | undefined> {
  host.print("Starting PostgreSQL ...");
  try {
    return await startEmbeddedPostgres({ dataDir: join(dataDir, "postgres") });
  } catch (error) {
    if (stopping()) return undefined;
    throw error;
  }
}

async function serveDemo(
  host: Host,
  env: Environment,
  secrets: DevSecrets,
  embedded: EmbeddedPostgres | undefined,
): Promise<void> {
  const config = readConfig(embedded === undefined ? env : await onEmbedded(embedded, env));
  await runMigrations(config);
  await ensureDemoTenant(config, secrets);
  const postgres = embedded ? `PostgreSQL ${embedded.version} in ${DATA_DIR}/` : "DATABASE_URL";
  await serveUntilStopped(host, config, (addresses) => {
    for (const line of banner(config, addresses, secrets, postgres)) host.print(line);
  });
}

type Environment = Host["env"];

function defaults({ pepper }: DevSecrets): Environment {
  return { ONCEWARD_API_KEY_PEPPER: pepper, ONCEWARD_LOG_LEVEL: "warn", ONCEWARD_DRAIN_DELAY: "0s" };
}

/** A variable that is set to nothing is not set: it must not hide a default. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, text]) => text !== ""));
}

/** The database of our own, and no other one that somebody's shell may name for migrations. */
async function onEmbedded(embedded: EmbeddedPostgres, env: Environment): Promise<Environment> {
  await ensureDatabase(embedded.url("postgres"), DATABASE);
  return { ...env, DATABASE_URL: embedded.url(DATABASE), DATABASE_DIRECT_URL: undefined };
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
