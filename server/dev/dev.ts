import { basename, join } from "node:path";
import { digestSecret, parseApiKey } from "../src/auth/api-key.ts";
import type { Host } from "../src/commands/host.ts";
import { runMigrations } from "../src/commands/schema.ts";
import { serveUntilStopped } from "../src/commands/serve.ts";
import { type Config, readConfig } from "../src/config/config.ts";
import type { Role } from "../src/domain/tenant.ts";
import { ensureDatabase } from "../src/store/databases.ts";
import { openPool } from "../src/store/pool.ts";
import { ensureApiKey } from "../src/store/tenants/api-keys.ts";
import { ensureTenant } from "../src/store/tenants/tenants.ts";
import { DEMO_TENANT, devBanner } from "./banner.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./embedded/postgres.ts";
import { type EmbeddedRedis, startEmbeddedRedis } from "./embedded/redis.ts";
import { type DevSecrets, ensureDevSecrets } from "./secrets.ts";

const DATA_DIR = ".onceward";
const DATABASE = "onceward";

/**
 * `npm start`: a replica with everything it needs, on an empty machine: its own Postgres unless `DATABASE_URL` names one, a
 * Redis if one is installed, the schema, a demo tenant with two keys, an operator's key, and a banner that says how to
 * call it. What it keeps is under `.onceward/`.
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
  const postgres =
    env.DATABASE_URL === undefined ? await startPostgres(host, dataDir, () => stopping) : undefined;
  const redis = env.REDIS_URL === undefined && !stopping ? await startRedis(host) : undefined;
  try {
    if (!stopping) await serveDemo(host, env, secrets, { postgres, redis });
  } finally {
    await redis?.stop();
    await postgres?.stop();
  }
  host.print("Stopped; what was claimed is kept for the next start.");
}

/** What `npm start` started itself; what the environment names instead is undefined. */
interface Embedded {
  readonly postgres: EmbeddedPostgres | undefined;
  readonly redis: EmbeddedRedis | undefined;
}

/** Undefined: Ctrl-C was pressed meanwhile, which a terminal also sends to what we have just started, such as initdb. */
async function startPostgres(
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

/** Undefined: none is installed, or it doesn't start; neither keeps the service from serving. */
async function startRedis(host: Host): Promise<EmbeddedRedis | undefined> {
  try {
    return await startEmbeddedRedis(host.env.PATH ?? "");
  } catch (error) {
    host.print(`Going on without Redis: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

async function serveDemo(
  host: Host,
  env: Environment,
  secrets: DevSecrets,
  { postgres, redis }: Embedded,
): Promise<void> {
  const withRedis = redis === undefined ? env : { ...env, REDIS_URL: redis.url };
  const config = readConfig(postgres === undefined ? withRedis : await onEmbedded(postgres, withRedis));
  await runMigrations(config);
  await ensureDemoTenant(config, secrets);
  const backing = {
    postgres: postgres ? `PostgreSQL ${postgres.version} in ${DATA_DIR}/` : "as DATABASE_URL says",
    redis: redis ? `${basename(redis.program)}, for copies only` : describeRedis(env),
  };
  await serveUntilStopped(host, config, (addresses) => {
    for (const line of devBanner(config, addresses, secrets, backing)) host.print(line);
  });
}

function describeRedis({ REDIS_URL }: Environment): string {
  return REDIS_URL === undefined ? "none: no redis-server or valkey-server on the PATH" : "as REDIS_URL says";
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
  const pool = openPool({
    databaseUrl: config.DATABASE_URL,
    size: 1,
    throughPgBouncer: config.ONCEWARD_PGBOUNCER,
  });
  try {
    const demoId = await ensureTenant(pool, DEMO_TENANT);
    const keys: readonly (readonly [Role, number | undefined, string])[] = [
      ["CALLER", demoId, secrets.callerKey],
      ["TENANT_ADMIN", demoId, secrets.adminKey],
      ["OPERATOR", undefined, secrets.operatorKey],
    ];
    for (const [role, tenantId, text] of keys) {
      const key = parseApiKey(text);
      if (key === undefined) throw new Error(`${DATA_DIR} holds a key that isn't one; remove the folder`);
      const digest = digestSecret(key.secret, config.ONCEWARD_API_KEY_PEPPER);
      await ensureApiKey(pool, { id: key.id, tenantId, role, digest, namespaces: undefined, label: "demo" });
    }
  } finally {
    await pool.close();
  }
}
