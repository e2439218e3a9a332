import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

/** A migrated database that every test database is a copy of. */
export const TEMPLATE_DATABASE = "onceward_template";

/** A connection to a database, for moving time and looking behind the service's back. */
export interface OpenDatabase {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** May be called again. */
  close(): Promise<void>;
}

/** Whether the run is with another Postgres than the packaged one, for what Postgres does in it. */
export function isOtherPostgres(): boolean {
  return inject("postgresBinaries") !== "";
}

/** A database of a test file's own. */
export interface TestDatabase extends OpenDatabase {
  /** Closes the connection, ends all others, and drops the database. */
  drop(): Promise<void>;
}

/** Copies the template; `template0` makes an empty one. */
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

/** Opens a database that is there already; connects on first use. */
export function openDatabase(url: string): OpenDatabase {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  // What a test kills on purpose must not end the test's process.
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
