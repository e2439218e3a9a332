import { basename, join } from "node:path";
import { readArguments } from "../src/commands/arguments.ts";
import type { Host } from "../src/commands/host.ts";
import { requirePepper } from "../src/commands/pepper.ts";
import { runMigrations } from "../src/commands/schema.ts";
import { requirePgBouncerSwitch, serveUntilStopped } from "../src/commands/serve.ts";
import { readConfig, withSecretFiles } from "../src/config/config.ts";
import { devBanner } from "./banner.ts";
import { ensureConsole } from "./console.ts";
import { ensureDatabase } from "./databases.ts";
import { ensureDemoTenant } from "./demo-tenant.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./embedded/postgres.ts";
import { type EmbeddedRedis, startEmbeddedRedis } from "./embedded/redis.ts";
import { DATA_DIR, type DevSecrets, ensureDevSecrets } from "./secrets.ts";

const DATABASE = "onceward";

const USAGE = `npm start

Runs the service with a demo tenant, an embedded PostgreSQL and, if one is installed, a Redis, until
Ctrl-C. Prints the addresses, the API keys and an example call. Data and keys stay in ${DATA_DIR}/ of the
working directory for the next start.

DATABASE_URL and REDIS_URL name other servers to use. ONCEWARD_HTTP_PORT, ONCEWARD_GRPC_PORT and
ONCEWARD_MANAGEMENT_PORT set other ports. Further environment variables: server/settings.md.`;

/**
 * `npm start`: runs a replica with everything that it needs: an embedded Postgres unless `DATABASE_URL` is
 * set, a Redis if one is installed, the schema, the console's page, a demo tenant with two keys and an operator's
 * key. Prints a banner with an example call. All files are under `.onceward/`.
 *
 * @throws CommandError for an argument other than `--help`.
 */
export async function dev(host: Host): Promise<void> {
  const { help } = readArguments(host.args, { help: { type: "boolean", short: "h" } });
  if (help) {
    host.print(USAGE);
    return;
  }
  // From here on, Ctrl-C lets a start in progress finish, so that it can be stopped in order.
  let stopping = false;
  void host.untilStopRequested().then(() => {
    stopping = true;
  });
  const dataDir = join(host.workingDir, DATA_DIR);
  const secrets = await ensureDevSecrets(dataDir);
  const env = { ...defaults(secrets), ...withoutEmpty(withSecretFiles(host.env)) };
  const consoleBuilt =
    env.ONCEWARD_CONSOLE === "false" ? undefined : ensureConsole(host.print, () => stopping);
  const postgres =
    env.DATABASE_URL === undefined ? await startPostgres(host, dataDir, () => stopping) : undefined;
  const redis = env.REDIS_URL === undefined && !stopping ? await startRedis(host) : undefined;
  try {
    // The server reads the page's files when it starts.
    await consoleBuilt;
    if (!stopping) await serveDemo(host, env, secrets, { postgres, redis });
  } finally {
    await redis?.stop();
    await postgres?.stop();
  }
  host.print("Stopped. Claims are kept for the next start.");
}

/** The servers that `npm start` started. Undefined: the environment names another one. */
interface Embedded {
  readonly postgres: EmbeddedPostgres | undefined;
  readonly redis: EmbeddedRedis | undefined;
}

/**
 * Returns undefined after Ctrl-C, which the terminal also sends to processes that we have just started, such
 * as initdb.
 */
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

/** Returns undefined if no Redis is installed or it does not start: the service runs without it. */
async function startRedis(host: Host): Promise<EmbeddedRedis | undefined> {
  try {
    return await startEmbeddedRedis(host.env.PATH ?? "");
  } catch (error) {
    host.print(`Continuing without Redis: ${error instanceof Error ? error.message : error}`);
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
  await runMigrations(config, () => {});
  await requirePgBouncerSwitch(config);
  await requirePepper(config);
  await ensureDemoTenant(config, secrets);
  const backing = {
    postgres: postgres
      ? `PostgreSQL ${postgres.version} in ${DATA_DIR}/, for psql ${postgres.url(DATABASE)}`
      : "as DATABASE_URL says",
    redis: redis ? `${basename(redis.program)}, as a cache only` : describeRedis(env),
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

/** Removes empty variables, which count as unset and must not hide a default. */
function withoutEmpty(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, text]) => text !== ""));
}

/**
 * Sets the embedded database, also for migrations, whichever database the shell's environment names for them.
 */
async function onEmbedded(embedded: EmbeddedPostgres, env: Environment): Promise<Environment> {
  await ensureDatabase(embedded.url("postgres"), DATABASE);
  return { ...env, DATABASE_URL: embedded.url(DATABASE), DATABASE_DIRECT_URL: undefined };
}
