import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { ensureDatabase } from "../../../server/dev/databases.ts";
import { findSystemPostgres } from "../../../server/dev/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { migrate } from "../../../server/src/database/migrate.ts";
import { makeDataDir } from "../processes/data-dir.ts";
import { createTestDatabase, type OpenDatabase, openDatabase } from "./database.ts";

/** A database that can be dumped, and restored from the dump. */
export interface RestorableDatabase extends OpenDatabase {
  /** Keeps the current contents of the database. */
  dump(): Promise<void>;
  /** Replaces the database with the dump. Replicas lose their connections, and may connect again. */
  restore(): Promise<void>;
}

const run = promisify(execFile);

/** The `bin` directory of PostgreSQL 15, with pg_dump and pg_restore; undefined if it is not installed. */
export const POSTGRES_15 = await findSystemPostgres(15, process.env.PATH);

/** A test database of the project's Postgres; its dump is a copy that Postgres makes. Removed when the test ends. */
export async function createCopiedDatabase(): Promise<RestorableDatabase> {
  const database = await createTestDatabase();
  const name = nameIn(database.url);
  const kept = `${name}_kept`;
  const onServer = statementsOn(inject("postgresUrl"));
  onTestFinished(async () => {
    await database.drop();
    await onServer(`drop database if exists ${kept} with (force)`);
  });
  return {
    ...database,
    async dump() {
      await onServer(...closing(name), `create database ${kept} template ${name}`, opening(name));
    },
    async restore() {
      await onServer(
        ...closing(name),
        `drop database ${name} with (force)`,
        `create database ${name} template ${kept}`,
      );
    },
  };
}

/** A database of a PostgreSQL 15 of the test's own, dumped by pg_dump. Removed when the test ends. */
export async function createDumpedDatabase(): Promise<RestorableDatabase> {
  if (POSTGRES_15 === undefined) throw new Error("PostgreSQL 15 is not installed");
  const dir = await makeDataDir("ow-restore-");
  const settings = { fsync: "off" };
  const postgres = await startEmbeddedPostgres({
    dataDir: join(dir, "data"),
    settings,
    binaries: POSTGRES_15,
  });
  const maintenance = postgres.url("postgres");
  await ensureDatabase(maintenance, "onceward");
  const url = postgres.url("onceward");
  await migrate(url, () => {});
  const database = openDatabase(url);
  const onServer = statementsOn(maintenance);
  onTestFinished(async () => {
    await database.close();
    await postgres.stop();
    await rm(dir, { recursive: true, force: true });
  });
  const file = join(dir, "dump");
  const program = (name: string) => join(POSTGRES_15 ?? "", name);
  return {
    ...database,
    async dump() {
      await run(program("pg_dump"), ["--format=custom", `--file=${file}`, url]);
    },
    async restore() {
      await onServer("create database restored template template0");
      await run(program("pg_restore"), ["--exit-on-error", `--dbname=${postgres.url("restored")}`, file]);
      await onServer(
        ...closing("onceward"),
        "drop database onceward with (force)",
        "alter database restored rename to onceward",
      );
    },
  };
}

/**
 * Returns statements that end the connections to a database and refuse new ones; replicas reconnect
 * automatically.
 */
function closing(name: string): readonly string[] {
  return [
    `alter database ${name} allow_connections false`,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${name}'`,
  ];
}

function opening(name: string): string {
  return `alter database ${name} allow_connections true`;
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1);
}

function statementsOn(url: string) {
  return async (...statements: readonly string[]) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  };
}
