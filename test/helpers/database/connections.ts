import pg from "pg";
import { onTestFinished, vi } from "vitest";
import { openPool, type Pool } from "../../../server/src/store/pool.ts";
import type { TestTenant } from "../servers/tenants.ts";
import type { TestDatabase } from "./database.ts";

/** Opens a connection for transactions that stay open; closes it when the test ends. */
export async function openConnection(database: Pick<TestDatabase, "url">): Promise<pg.Client> {
  const connection = new pg.Client({ connectionString: database.url });
  connection.on("error", () => {});
  await connection.connect();
  onTestFinished(() => connection.end());
  return connection;
}

/** Opens a pool as the server does; closes it when the test ends. */
export function openStorePool(database: TestDatabase, size = 2): Pool {
  const pool = openPool({ databaseUrl: database.url, size, throughPgBouncer: false });
  onTestFinished(() => pool.close());
  return pool;
}

/** Begins a transaction that locks the rows of these keys. */
export async function lockRows(
  connection: pg.Client,
  { id }: TestTenant,
  keys: readonly string[],
): Promise<void> {
  await connection.query("begin");
  await connection.query("select from records where tenant_id = $1 and key = any ($2) for update", [
    id,
    keys,
  ]);
}

/** Resolves once this many statements of the service wait for a lock in this database. */
export async function untilBlocked(database: TestDatabase, statements = 1): Promise<void> {
  const blocked = () =>
    database.query(
      `select from pg_stat_activity
        where datname = current_database() and application_name = 'onceward' and wait_event_type = 'Lock'`,
    );
  await vi.waitUntil(async () => (await blocked()).length >= statements, { timeout: 30_000, interval: 5 });
}
