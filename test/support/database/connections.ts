import pg from "pg";
import { onTestFinished, vi } from "vitest";
import { openPool, type Pool } from "../../../server/src/database/pool.ts";
import type { TestTenant } from "../servers/tenants.ts";
import { useStarted } from "../use-started.ts";
import { isCitus, type TestDatabase } from "./database.ts";

/** Opens a connection for transactions that stay open; closes it when the test ends. */
export async function openConnection(database: Pick<TestDatabase, "url">): Promise<pg.Client> {
  const connection = new pg.Client({ connectionString: database.url });
  connection.on("error", () => {});
  await connection.connect();
  onTestFinished(() => connection.end());
  return connection;
}

/** Opens a pool as the server does; closes it when the test ends. */
export function openStorePool(database: Pick<TestDatabase, "url">, size = 2): Pool {
  const pool = openPool({ databaseUrl: database.url, size, throughPgBouncer: false });
  onTestFinished(() => pool.close());
  return pool;
}

/** Opens a pool as the server does for the tests of the file. */
export function usePool(database: Pick<TestDatabase, "url">, size = 2): Pool {
  return useStarted(
    () => openPool({ databaseUrl: database.url, size, throughPgBouncer: false }),
    (pool) => pool.close(),
  );
}

/** Begins a transaction that locks the rows of these keys, one by one: on Citus, each may be on another worker. */
export async function lockRows(
  connection: pg.Client,
  { id }: TestTenant,
  keys: readonly string[],
): Promise<void> {
  await connection.query("begin");
  for (const key of keys) {
    await connection.query("select from records where tenant_id = $1 and key = $2 for update", [id, key]);
  }
}

const FIND_BLOCKED = `
select from pg_stat_activity
 where datname = current_database() and application_name = 'onceward' and wait_event_type = 'Lock'`;

/** On Citus, a statement of the coordinator waits in sessions of workers that have its number. */
const FIND_BLOCKED_ON_CITUS = `
select distinct a.global_pid
  from citus_stat_activity a
 where a.datname = current_database()
   and a.wait_event_type = 'Lock'
   and exists (select from citus_stat_activity s
                where s.global_pid = a.global_pid and s.application_name = 'onceward')`;

/** Resolves once this many statements of the service wait for a lock in this database, on any of its nodes. */
export async function untilBlocked(database: TestDatabase, statements = 1): Promise<void> {
  const blocked = () => database.query(isCitus() ? FIND_BLOCKED_ON_CITUS : FIND_BLOCKED);
  await vi.waitUntil(async () => (await blocked()).length >= statements, { timeout: 30_000, interval: 5 });
}
