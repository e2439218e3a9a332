import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createOperator, type Operator } from "@onceward/client/admin";
import { DEMO_TENANT } from "../../../server/dev/banner.ts";
import { readPidFile } from "../../../server/dev/embedded/pid-file.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { openPool, type Pool } from "../../../server/src/database/pool.ts";

/** A server that `npm start` runs, and its database. Disposing closes the connections. */
export interface DevServer extends AsyncDisposable {
  readonly address: string;
  readonly operator: Operator;
  readonly pool: Pool;
  readonly databaseUrl: string;
  readonly pepper: string;
  /** The directory with the keys. */
  readonly dataDir: string;
  /** The tenant whose keys `npm start` prints. Undefined: a server that was started otherwise. */
  readonly demo?: DemoTenant;
}

/** The tenant that `npm start` creates. */
export interface DemoTenant {
  readonly name: string;
  readonly callerKey: string;
  readonly adminKeyFile: string;
}

const DATA_DIR = ".onceward";
const DATABASE = "onceward";
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);
const CALL_TIMEOUT_MS = 10_000;
const CONNECTIONS = 2;

/** Thrown for a server that `npm start` did not start. */
export class NoDevServer extends Error {
  override readonly name = "NoDevServer";
}

/**
 * Finds the server that `npm start` runs in a directory. The traffic moves times in its database, so it must be
 * the embedded one in `.onceward/`: a database that a person made is never touched.
 *
 * @param address of the server's gRPC port.
 * @throws NoDevServer if there is none, or the address is not of this machine.
 */
export async function findDevServer(workingDir: string, address: string): Promise<DevServer> {
  if (!URL.canParse(address) || !LOOPBACK.has(new URL(address).hostname))
    throw new NoDevServer(`${address} is not an address of this machine, such as http://127.0.0.1:50051`);
  const dataDir = join(workingDir, DATA_DIR);
  const operatorKey = await readKept(join(dataDir, "operator.key"));
  const { pepper } = JSON.parse(await readKept(join(dataDir, "dev-secrets.json"))) as { pepper: string };
  const demo = {
    name: DEMO_TENANT,
    callerKey: await readKept(join(dataDir, "caller.key")),
    adminKeyFile: join(dataDir, "admin.key"),
  };
  const postgresDir = join(dataDir, "postgres");
  if ((await readPidFile(postgresDir)) === undefined)
    throw new NoDevServer(`no PostgreSQL runs in ${DATA_DIR}/: run \`npm start\` without DATABASE_URL first`);
  await using opened = new AsyncDisposableStack();
  const operator = createOperator({ address, apiKey: operatorKey });
  opened.defer(() => operator.close());
  await operator.getServerInfo({}, { timeoutMs: CALL_TIMEOUT_MS }).catch((cause: unknown) => {
    throw new NoDevServer(
      `no server of ${dataDir} answers at ${address} (${cause}); --address sets another`,
      {
        cause,
      },
    );
  });
  // Adopts the running one.
  const postgres = await startEmbeddedPostgres({ dataDir: postgresDir });
  opened.defer(() => postgres.stop());
  const databaseUrl = postgres.url(DATABASE);
  const pool = openPool({ databaseUrl, size: CONNECTIONS, throughPgBouncer: false });
  opened.defer(() => pool.close());
  const kept = opened.move();
  return {
    ...{ address, operator, pool, databaseUrl, pepper, dataDir, demo },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function readKept(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (cause) {
    throw new NoDevServer(`cannot read ${file}: run \`npm start\` in this directory first`, { cause });
  }
}
