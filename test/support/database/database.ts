import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import { makeCitus } from "./citus.ts";
import { runStatements } from "./statement-runner.ts";

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

/** The database of one test file. */
export interface TestDatabase extends OpenDatabase {
  /** Closes the connection, ends all others, and drops the database. */
  drop(): Promise<void>;
}

/** Returns whether the tests run on a Citus of three nodes. */
export function isCitus(): boolean {
  return inject("citusWorkerUrls").length > 0;
}

/**
 * Creates a database as a copy of the template; `template0` creates an empty one. On Citus, a database with the
 * template's contents is created on each node, and an empty one on the coordinator only.
 */
export async function createTestDatabase(template = TEMPLATE_DATABASE): Promise<TestDatabase> {
  const name = randomName();
  const coordinatorUrl = databaseUrl(inject("postgresUrl"), name);
  if (isCitus() && template === TEMPLATE_DATABASE) {
    await Promise.all(nodeUrls().map((url) => runStatements(url, `create database ${name}`)));
    await makeCitus({
      coordinatorUrl,
      workerUrls: inject("citusWorkerUrls").map((url) => databaseUrl(url, name)),
    });
  } else {
    await runStatements(inject("postgresUrl"), `create database ${name} template ${template}`);
  }
  return testDatabase(name, coordinatorUrl);
}

/** As `createTestDatabase`, for a test alone: drops the database when the test ends. */
export async function createDatabaseOfTest(template?: string): Promise<TestDatabase> {
  const database = await createTestDatabase(template);
  onTestFinished(() => database.drop());
  return database;
}

/** Creates an empty database of the same name on each node of a Citus, and returns the coordinator's. */
export async function createEmptyNodes(): Promise<TestDatabase & { readonly workerUrls: readonly string[] }> {
  const name = randomName();
  await Promise.all(nodeUrls().map((url) => runStatements(url, `create database ${name}`)));
  const workerUrls = inject("citusWorkerUrls").map((url) => databaseUrl(url, name));
  return { ...testDatabase(name, databaseUrl(inject("postgresUrl"), name)), workerUrls };
}

function randomName(): string {
  return `test_${randomBytes(6).toString("hex")}`;
}

function testDatabase(name: string, url: string): TestDatabase {
  const opened = openDatabase(url);
  return {
    ...opened,
    async drop() {
      await opened.close();
      for (const node of nodeUrls()) {
        await runStatements(node, `drop database if exists ${name} with (force)`);
      }
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

/** Opens the databases of a test database on all nodes: one on a plain Postgres. */
export function openNodes({ url }: Pick<OpenDatabase, "url">): readonly OpenDatabase[] {
  const name = new URL(url).pathname.slice(1);
  return nodeUrls().map((node) => openDatabase(databaseUrl(node, name)));
}

/** Returns the maintenance databases of all nodes: one of a plain Postgres, several of a Citus. */
function nodeUrls(): readonly string[] {
  return [inject("postgresUrl"), ...inject("citusWorkerUrls")];
}

function databaseUrl(nodeUrl: string, name: string): string {
  const url = new URL(nodeUrl);
  url.pathname = `/${name}`;
  return url.href;
}
