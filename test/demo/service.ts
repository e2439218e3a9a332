import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../server/dev/embedded/postgres.ts";
import { formatApiKey, generateApiKey } from "../../server/src/core/auth/api-key.ts";
import { storedSecret } from "../../server/src/core/auth/pepper.ts";
import { readConfig } from "../../server/src/core/config/config.ts";
import { ensureDatabase } from "../../server/src/core/store/databases.ts";
import { migrate } from "../../server/src/core/store/migrate.ts";
import { openPool } from "../../server/src/core/store/pool.ts";
import { ensureApiKey } from "../../server/src/core/store/tenants/api-keys.ts";
import { ensureTenant } from "../../server/src/core/store/tenants/tenants.ts";
import { createLog } from "../../server/src/core/telemetry/log.ts";
import { startServer } from "../../server/src/server.ts";
import type { Guard } from "./messages.ts";

const DATABASE = "onceward";

/** An Onceward server on its own Postgres, with one tenant, for the duration of the demo. */
export interface Service extends AsyncDisposable {
  readonly guard: Guard;
  readonly postgresVersion: string;
}

/** Starts both; disposing stops them and removes everything they wrote. */
export async function startService(): Promise<Service> {
  const cleanUp = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(join(tmpdir(), "onceward-demo-"));
    cleanUp.defer(() => rm(dir, { recursive: true, force: true }));
    // As root, Postgres runs as another user, which must be able to enter.
    await chmod(dir, 0o755);
    const dataDir = join(dir, "postgres");
    const postgres = await startEmbeddedPostgres({ dataDir });
    // Where that user can't enter, the data lies elsewhere, behind a link.
    const data = await realpath(dataDir);
    cleanUp.defer(() => rm(data, { recursive: true, force: true }));
    cleanUp.defer(() => postgres.stop());
    await ensureDatabase(postgres.url("postgres"), DATABASE);
    const config = readConfig({
      DATABASE_URL: postgres.url(DATABASE),
      ONCEWARD_API_KEY_PEPPER: randomBytes(32).toString("base64url"),
      ONCEWARD_LOG_LEVEL: "error",
      ONCEWARD_GRPC_PORT: "0",
      ONCEWARD_HTTP_PORT: "0",
      ONCEWARD_MANAGEMENT_PORT: "0",
      ONCEWARD_DRAIN_DELAY: "0s",
      ONCEWARD_DRAIN_TIMEOUT: "1s",
    });
    await migrate(config.DATABASE_URL, () => {});
    const apiKey = await createCaller(config.DATABASE_URL, config.ONCEWARD_API_KEY_PEPPER);
    const server = await startServer(config, createLog(config.ONCEWARD_LOG_LEVEL, process.stderr));
    cleanUp.defer(() => server.stop());
    const { grpcPort } = server.addresses;
    return {
      guard: { address: `http://127.0.0.1:${grpcPort}`, apiKey },
      postgresVersion: postgres.version,
      [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
    };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

async function createCaller(databaseUrl: string, pepper: string): Promise<string> {
  const pool = openPool({ databaseUrl, size: 1, throughPgBouncer: false });
  try {
    const tenantId = await ensureTenant(pool, "demo");
    const { id, secret } = generateApiKey();
    const stored = storedSecret(secret, pepper);
    await ensureApiKey(pool, {
      ...stored,
      id,
      tenantId,
      role: "CALLER",
      namespaces: undefined,
      label: "demo",
    });
    return formatApiKey({ id, secret });
  } finally {
    await pool.close();
  }
}
