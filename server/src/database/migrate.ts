import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { readBackend, withConnection } from "./connection.ts";
import { type MigrationConnections, runByItself, runInTransaction } from "./migration/locks.ts";
import { splitStatements } from "./migration/sql-text.ts";
import { MIGRATIONS_DIR, shippedMigrations } from "./shipped-migrations.ts";

const MIGRATIONS_TABLE = "schema_migrations";
/** Limit for reading which migrations ran. Migrations themselves have no time limit. */
const QUERY_TIMEOUT_MS = 10_000;
/** The lock of all versions of `migrate`. */
const ADVISORY_LOCK = "7241865325823964";
/** How often a second `migrate` asks whether the first one has ended. */
const TURN_POLL_MS = 250;
/** First line of a migration whose statements do not run in one transaction. */
const BY_STATEMENT = "-- Statement by statement";

/** A database's schema compared with the one that this server needs. */
export type SchemaState =
  | { readonly kind: "current" }
  /** These migrations must run first. */
  | { readonly kind: "behind"; readonly missing: readonly string[] }
  /** A newer server has migrated the database. This server can still run. */
  | { readonly kind: "ahead"; readonly unknown: readonly string[] };

/**
 * Runs every missing migration, each in one transaction or statement by statement, and returns their names.
 * Callers of the service wait for no lock of a migration longer than its budget (`migration/locks.ts`).
 * Several processes may migrate at once: an advisory lock lets one of them run first, and the others then
 * find nothing to do.
 *
 * @param report receives which transactions a migration waits for.
 * @throws Error of Postgres if a migration fails: it changed nothing, and those before it are done.
 */
export function migrate(
  databaseUrl: string,
  report: (line: string) => void,
  {
    dir = MIGRATIONS_DIR,
  }: {
    /** The directory of the migrations; those of this server if unset. */
    readonly dir?: string;
  } = {},
): Promise<readonly string[]> {
  const config = { connectionString: databaseUrl, application_name: "onceward migrate" };
  return withConnection(config, (client) =>
    withConnection({ ...config, query_timeout: QUERY_TIMEOUT_MS }, async (watcher) => {
      // The role's own limits are those of the service's statements (server/settings.md#pgbouncer).
      await client.query("set statement_timeout = 0; set lock_timeout = 0");
      await takeTurn(client, report);
      const connections = { client, watcher, pid: await readBackend(client), report };
      const missing = await missingMigrations(client, dir);
      for (const name of missing) await runMigration(connections, dir, name);
      return missing;
    }),
  );
}

/**
 * Waits without a statement that runs: the snapshot of such a statement would block an index that is built
 * concurrently.
 */
async function takeTurn(client: pg.Client, report: (line: string) => void): Promise<void> {
  for (let isReported = false; ; isReported = true) {
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock(${ADVISORY_LOCK}) as taken`,
    );
    if (rows[0]?.taken === true) return;
    if (!isReported) report("Another migrate is running; waiting for its end.");
    await delay(TURN_POLL_MS);
  }
}

/** @throws Error if a migration is missing although a later one ran: its statements may no longer fit. */
async function missingMigrations(client: pg.Client, dir: string): Promise<readonly string[]> {
  const shipped = await shippedMigrations(dir);
  const applied = await readApplied(client);
  const missing = shipped.filter((name) => !applied.includes(name));
  const [first] = missing;
  const later = applied.find((name) => first !== undefined && name > first);
  if (later !== undefined) throw new Error(`${first} did not run before ${later}.`);
  return missing;
}

async function runMigration(connections: MigrationConnections, dir: string, name: string): Promise<void> {
  const text = await readFile(join(dir, `${name}.sql`), "utf8");
  const statements = splitStatements(text);
  const record = [
    CREATE_TABLE,
    `insert into ${MIGRATIONS_TABLE} (name, run_on) values (${literal(name)}, now())`,
  ];
  if (text.startsWith(BY_STATEMENT)) {
    for (const statement of statements) await runByItself(connections, name, statement);
    await runInTransaction(connections, name, record);
  } else {
    await runInTransaction(connections, name, [...statements, ...record]);
  }
}

const CREATE_TABLE = `
create table if not exists ${MIGRATIONS_TABLE} (id serial primary key, name varchar(255) not null, run_on timestamp not null)`;

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns the schema in which tables are created: the first one of `search_path` that exists; undefined if there is none. */
export async function readCurrentSchema(databaseUrl: string): Promise<string | undefined> {
  const config = { connectionString: databaseUrl, query_timeout: QUERY_TIMEOUT_MS };
  return await withConnection(config, async (client) => {
    const { rows } = await client.query<{ schema: string | null }>("select current_schema() as schema");
    return rows[0]?.schema ?? undefined;
  });
}

/** Compares the migrations that ran in a database with those that this server contains. Changes nothing. */
export async function readSchemaState(databaseUrl: string): Promise<SchemaState> {
  const shipped = await shippedMigrations();
  const config = { connectionString: databaseUrl, query_timeout: QUERY_TIMEOUT_MS };
  const applied = await withConnection(config, readApplied);
  const missing = shipped.filter((name) => !applied.includes(name));
  if (missing.length > 0) return { kind: "behind", missing };
  const unknown = applied.filter((name) => !shipped.includes(name));
  return unknown.length > 0 ? { kind: "ahead", unknown } : { kind: "current" };
}

async function readApplied(client: pg.Client): Promise<readonly string[]> {
  const found = await client.query<{ there: boolean }>("select to_regclass($1) is not null as there", [
    MIGRATIONS_TABLE,
  ]);
  if (found.rows[0]?.there !== true) return [];
  const { rows } = await client.query<{ name: string }>(`select name from ${MIGRATIONS_TABLE} order by id`);
  return rows.map((row) => row.name);
}
