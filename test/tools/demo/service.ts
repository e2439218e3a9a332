import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { formatApiKey, generateApiKey } from "../../../server/src/core/auth/api-key.ts";
import { storedSecret } from "../../../server/src/core/auth/pepper.ts";
import { readConfig } from "../../../server/src/core/config/config.ts";
import { migrate } from "../../../server/src/core/store/migrate.ts";
import { openPool, type Pool } from "../../../server/src/core/store/pool.ts";
import { insertApiKey } from "../../../server/src/core/store/tenants/api-keys.ts";
import { ensureTenant } from "../../../server/src/core/store/tenants/tenants.ts";
import { createLog } from "../../../server/src/core/telemetry/log.ts";
import { startServer } from "../../../server/src/server.ts";
import type { Guard } from "./messages.ts";

const DATABASE = "onceward";

/** An Onceward server on its own Postgres, with one tenant, for the duration of the demo. */
export interface Service extends AsyncDisposable {
  readonly guard: Guard;
  readonly postgresVersion: string;
  /** Declares a namespace, before its first call. */
  declare(namespace: string, lateKeys: "RUN" | "REQUIRE_TIME"): Promise<void>;
  /** Makes all records of the tenant older, as if so many days had passed. */
  letDaysPass(days: number): Promise<void>;
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
      // Results in memory would not become older with their rows.
      ONCEWARD_CACHE_MIB: "0",
      ONCEWARD_DRAIN_DELAY: "0s",
      ONCEWARD_DRAIN_TIMEOUT: "1s",
    });
    await migrate(config.DATABASE_URL, () => {});
    const pool = openPool({ databaseUrl: config.DATABASE_URL, size: 1, throughPgBouncer: false });
    cleanUp.defer(() => pool.close());
    const tenantId = await ensureTenant(pool, "demo");
    const apiKey = await createCaller(pool, tenantId, config.ONCEWARD_API_KEY_PEPPER);
    const server = await startServer(config, createLog(config.ONCEWARD_LOG_LEVEL, process.stderr));
    cleanUp.defer(() => server.stop());
    const { grpcPort } = server.addresses;
    return {
      guard: { address: `http://127.0.0.1:${grpcPort}`, apiKey },
      postgresVersion: postgres.version,
      async declare(namespace, lateKeys) {
        await pool.run(declareNamespace, [tenantId, namespace, lateKeys], 1);
      },
      async letDaysPass(days) {
        await pool.run(ageRecords, [tenantId, days], 1);
      },
      [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
    };
  } catch (error) {
    await cleanUp.disposeAsync();
    throw error;
  }
}

async function createCaller(pool: Pool, tenantId: number, pepper: string): Promise<string> {
  const { id, secret } = generateApiKey();
  const stored = storedSecret(secret, pepper);
  const terms = { id, role: "CALLER", namespaces: undefined, label: "demo", expiresAtMs: undefined } as const;
  await insertApiKey(pool, tenantId, terms, stored);
  return formatApiKey({ id, secret });
}

const declareNamespace = {
  name: "declare_namespace",
  text: "insert into namespaces (tenant_id, name, late_keys) values ($1, $2, $3)",
};

const ageRecords = {
  name: "age_records",
  text: `
  update records set
    first_claimed_at = first_claimed_at - $2::int * interval '1 day',
    claimed_at = claimed_at - $2::int * interval '1 day',
    sweep_at = sweep_at - $2::int * interval '1 day',
    lease_expires_at = lease_expires_at - $2::int * interval '1 day',
    expires_at = expires_at - $2::int * interval '1 day',
    settled_at = settled_at - $2::int * interval '1 day',
    result_expires_at = result_expires_at - $2::int * interval '1 day'
  where tenant_id = $1`,
};
