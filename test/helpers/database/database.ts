import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

/** The migrated database that is copied to create a test database. */
export const TEMPLATE_DATABASE = "onceward_template";

/** A connection to a database, to move timestamps and to read rows without the service. */
export interface OpenDatabase {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** May be called again. */
  close(): Promise<void>;
}

/**
 * Returns whether the tests run with another Postgres than the packaged one, to find differences between
 * versions.
 */
export function isOtherPostgres(): boolean {
  return inject("postgresBinaries") !== "";
}

/** Returns whether the tests run with a Postgres between the oldest and the newest supported one. */
export function isPostgresBetween(): boolean {
  return inject("isBetween");
}

/** The database of one test file. */
export interface TestDatabase extends OpenDatabase {
  /** Closes the connection, ends all others, and drops the database. */
  drop(): Promise<void>;
}

/** Creates a database as a copy of the template; `template0` creates an empty one. */
export async function createTestDatabase(template = TEMPLATE_DATABASE): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  await onServer(`create database ${name} template ${template}`);
  const opened = openDatabase(databaseUrl(name));
  return {
    ...opened,
    async drop() {
      await opened.close();
      await onServer(`drop database if exists ${name} with (force)`);
    },
  };
}

/** Opens an existing database; connects at the first query. */
export function openDatabase(url: string): OpenDatabase {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  // A connection that a test kills must not end the test process.
  pool.on("error", () => {});
  let closed: Promise<void> | undefined;
  return {
    url,
    query: async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(text, [...values])).rows,
    close() {
      closed ??= pool.end();
      return closed;
    },
  };
}

function databaseUrl(name: string): string {
  const url = new URL(inject("postgresUrl"));
  url.pathname = `/${name}`;
  return url.href;
}

async function onServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
