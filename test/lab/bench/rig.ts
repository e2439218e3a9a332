import { chmod, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createOnceward, type Onceward } from "@onceward/client";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { startEmbeddedRedis } from "../../../server/dev/embedded/redis.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { compileImageProgram } from "../../support/processes/image-program.ts";
import { newSocketPath } from "../../support/servers/server.ts";
import { type ServerProcess, startServerProcess } from "../../support/servers/server-process.ts";
import { withStallProbe } from "../../support/servers/stalls.ts";
import { createTenant, type TestTenant } from "../../support/servers/tenants.ts";
import { type BenchDatabase, openBenchDatabase } from "./database.ts";
import { DIY_TABLE } from "./target-diy.ts";

/** A server with a tenant, its database, and a client of it. */
export interface Station extends AsyncDisposable {
  readonly server: ServerProcess;
  readonly database: BenchDatabase;
  readonly tenant: TestTenant;
  readonly client: Onceward;
  /** The path of the server's Unix socket. */
  readonly socket: string;
}

/**
 * The processes that are measured: one Postgres with its default, durable settings, one Redis, and servers as
 * the image runs them.
 */
export interface Rig extends AsyncDisposable {
  readonly postgresVersion: string;
  /** Undefined: no Redis is installed, and the servers run without one. */
  readonly redisProgram: string | undefined;
  /** Starts a server on a new or an existing database; `env` overrides its configuration. */
  startStation(how?: StationOptions): Promise<Station>;
  /** Creates a database with the DIY table. */
  createDiyDatabase(): Promise<BenchDatabase>;
}

export interface StationOptions {
  readonly on?: Pick<Station, "database" | "tenant">;
  readonly env?: Readonly<Record<string, string>>;
  /** Start `bare-server.ts` instead, for P12. */
  readonly bare?: boolean;
  /** Measure how long the event loop is held, for P13. */
  readonly stallProbe?: boolean;
}

const BARE_SERVER = fileURLToPath(new URL("bare-server.ts", import.meta.url));

/**
 * Starts Postgres and Redis; disposing stops everything that was started and removes its files. `serverEnv`
 * configures every server, and wins over what a figure sets.
 */
export async function startRig(serverEnv: Readonly<Record<string, string>> = {}): Promise<Rig> {
  const cleanUp = new AsyncDisposableStack();
  try {
    const program = await compileImageProgram();
    const postgres = await startPostgres(cleanUp);
    const redis = await startEmbeddedRedis(process.env.PATH ?? "");
    if (redis !== undefined) cleanUp.defer(() => redis.stop());
    let databases = 0;
    const createDatabase = async () => {
      const name = `bench_${++databases}`;
      await ensureDatabase(postgres.url("postgres"), name);
      return cleanUp.use(openBenchDatabase(postgres.url(name)));
    };
    const createStationDatabase = async () => {
      const database = await createDatabase();
      await migrate(database.url, () => {});
      return { database, tenant: await createTenant(database) };
    };
    return {
      postgresVersion: postgres.version,
      redisProgram: redis?.program,
      async createDiyDatabase() {
        const database = await createDatabase();
        await database.query(DIY_TABLE);
        return database;
      },
      async startStation({ on, env, bare = false, stallProbe = false } = {}) {
        const { database, tenant } = on ?? (await createStationDatabase());
        const started = bare ? [...program.slice(0, -1), BARE_SERVER] : [...program, "serve"];
        const station = await openStation(
          { database, tenant },
          stallProbe ? withStallProbe(started) : started,
          {
            ONCEWARD_SWEEP_INTERVAL: "5s",
            ...(redis && { REDIS_URL: redis.url }),
            ...env,
            ...serverEnv,
          },
        );
        return cleanUp.use(station);
      },
      [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
    };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

async function startPostgres(cleanUp: AsyncDisposableStack) {
  const dir = await mkdtemp(join(tmpdir(), "onceward-bench-"));
  cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
  // As root, Postgres runs as another user, which must be able to enter.
  await chmod(dir, 0o755);
  const [dataDir, settings] = [join(dir, "postgres"), JSON.parse(process.env.BENCH_POSTGRES ?? "{}")];
  const postgres = await startEmbeddedPostgres({ dataDir, settings });
  // Where that user can't enter, the data lies elsewhere, behind a link.
  const data = await realpath(dataDir);
  cleanUp.defer(() => rm(data, { recursive: true, force: true }));
  cleanUp.defer(() => postgres.stop());
  return postgres;
}

async function openStation(
  { database, tenant }: Pick<Station, "database" | "tenant">,
  program: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Station> {
  const socket = newSocketPath();
  const ofTenant = { ...env, BENCH_TENANT_ID: String(tenant.id), ONCEWARD_SOCKET: socket };
  const server = await startServerProcess(database.url, ofTenant, program);
  const client = createOnceward({
    address: `http://127.0.0.1:${server.grpcPort}`,
    apiKey: tenant.apiKey,
  });
  return {
    server,
    database,
    tenant,
    client,
    socket,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server.end();
    },
  };
}
