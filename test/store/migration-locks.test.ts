import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { MIGRATIONS_DIR } from "../../server/src/database/shipped-migrations.ts";
import { connectClient } from "../support/calls/clients.ts";
import { grant } from "../support/calls/verbs.ts";
import { newDir } from "../support/new-dir.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

/** Returns a directory with this server's migrations and one more. */
async function withMigration(name: string, text: string): Promise<string> {
  const dir = await newDir();
  await cp(MIGRATIONS_DIR, dir, { recursive: true });
  await writeFile(join(dir, `${name}.sql`), text);
  return dir;
}

/** Begins a transaction with a statement, and leaves it open. */
async function openTransaction(statement: string) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await client.query("begin");
  await client.query(statement);
  return { pid: rows[0]?.pid, commit: () => client.query("commit") };
}

/**
 * Claims new keys, one after another, until it is stopped. A claim that waits for a lock for 1 s is refused.
 */
async function startClaims(prefix: string) {
  const client = connectClient(server, (await createTenant(database)).apiKey);
  let stopped = false;
  const granted = (async () => {
    let count = 0;
    for (; !stopped; count++) await grant(client, { key: `${prefix}-${count}` });
    return count;
  })();
  granted.catch(() => {});
  return {
    stop() {
      stopped = true;
      return granted;
    },
  };
}

test("a migration waits for a transaction without blocking claims, and says what blocks it", async () => {
  const dir = await withMigration("8001_column", "alter table records add column later text;");
  const holder = await openTransaction("select from records where key = 'secret order'");
  const claims = await startClaims("column");
  const told: string[] = [];
  const migrating = migrate(database.url, (line) => told.push(line), { dir });
  await expect.poll(() => told.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(2);
  for (const line of told) {
    expect(line).toMatch(
      new RegExp(
        `^8001_column waits for a lock of pid ${holder.pid}, \\d+ s old, idle in transaction: select from records where key = \\?\\. `,
      ),
    );
  }
  await holder.commit();
  expect(await migrating).toEqual(["8001_column"]);
  expect(await claims.stop()).toBeGreaterThan(0);
});

test("an index is built beside callers, after open transactions, and again if cut off", async () => {
  const dir = await withMigration(
    "8002_index",
    "-- Statement by statement\n\ndrop index concurrently if exists records_later;\ncreate index concurrently records_later on records (owner);\n",
  );
  const readIndex = () =>
    database.query(`
      select i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid where c.relname = 'records_later'`);
  const holder = await openTransaction("update records set owner = 'secret owner'");
  const claims = await startClaims("index");
  const told: string[] = [];
  const cutOff = migrate(database.url, (line) => told.push(line), { dir }).then(
    () => "done",
    () => "cut off",
  );
  await expect.poll(() => told, { timeout: 60_000 }).not.toEqual([]);
  expect(told[0]).toMatch(`8002_index waits for the end of pid ${holder.pid}, `);
  expect(told[0]).toMatch(": update records set owner = ?. Claims do not wait.");
  await database.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'onceward migrate' and wait_event_type = 'Lock'`);
  expect(await cutOff).toBe("cut off");
  expect(await readIndex()).toEqual([{ valid: false }]);
  await holder.commit();
  expect(await migrate(database.url, () => {}, { dir })).toEqual(["8002_index"]);
  expect(await readIndex()).toEqual([{ valid: true }]);
  expect(await claims.stop()).toBeGreaterThan(0);
});
