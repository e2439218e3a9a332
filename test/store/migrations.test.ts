import { expect, onTestFinished, test } from "vitest";
import { migrateCommand } from "../../server/src/commands/migrate.ts";
import { migrate, readSchemaState } from "../../server/src/core/store/migrate.ts";
import { connectClient } from "../helpers/calls/clients.ts";
import { complete, grant, ORDER, success } from "../helpers/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import { dumpSchema } from "../helpers/database/schema-dump.ts";
import { startTestServer, TEST_PEPPER } from "../helpers/servers/server.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

async function newDatabase(template?: string): Promise<TestDatabase> {
  const database = await createTestDatabase(template);
  onTestFinished(() => database.drop());
  return database;
}

/** Returns the output of `migrate` with these arguments. Rejects with its error. */
async function runMigrate(database: TestDatabase, args: readonly string[] = []): Promise<string[]> {
  const printed: string[] = [];
  const refuse = () => {
    throw new Error("migrate needs nothing else of its host");
  };
  await migrateCommand({
    args,
    env: { DATABASE_URL: database.url, ONCEWARD_API_KEY_PEPPER: TEST_PEPPER },
    workingDir: "/",
    print: (line: string) => printed.push(line),
    untilStopRequested: refuse,
    setExitCode: refuse,
    input: { [Symbol.asyncIterator]: refuse },
    write: refuse,
    report: refuse,
    logDestination: { write: refuse },
  });
  return printed;
}

test("an empty database is migrated to the schema, and migrating it again does nothing", async () => {
  const database = await newDatabase("template0");
  const ran = await runMigrate(database);
  expect(ran[0]).toBe("ran 0001_initial");
  expect(ran.at(-1)).toBe("The schema is current.");
  const made = await dumpSchema(database.url);
  expect(await runMigrate(database)).toEqual(["The schema is current."]);
  expect(await dumpSchema(database.url)).toBe(made);
});

test("if several processes migrate an empty database at once, one does it and the others find nothing to do", async () => {
  const database = await newDatabase("template0");
  const ran = await Promise.all([1, 2, 3].map(() => migrate(database.url, () => {})));
  const [first] = ran.filter((names) => names.length > 0);
  expect(ran.map((names) => names.length).toSorted()).toEqual([0, 0, first?.length]);
  expect(await readSchemaState(database.url)).toEqual({ kind: "current" });
});

test("a migration that fails leaves the database as it was", async () => {
  const database = await newDatabase("template0");
  await database.query("create table records (in_the_way int)");
  await expect(migrate(database.url, () => {})).rejects.toThrow(/"records" already exists/);
  const tables = await database.query("select relname from pg_class where relname in ('tenants', 'records')");
  expect(tables).toEqual([{ relname: "records" }]);
});

test("--check of a migrated database says that it is current, and changes nothing", async () => {
  const database = await newDatabase();
  expect(await runMigrate(database, ["--check"])).toEqual(["The schema is current."]);
});

test("--check of a database that is behind names what is missing and what to run, and changes nothing", async () => {
  const database = await newDatabase("template0");
  await expect(runMigrate(database, ["--check"])).rejects.toThrow(
    /lacks 0001_initial.*Run: onceward-server migrate/,
  );
  expect(await database.query("select from pg_class where relname = 'schema_migrations'")).toEqual([]);
});

test("--check of a database that a newer server migrated says so and succeeds", async () => {
  const database = await newDatabase();
  await database.query("insert into schema_migrations (name, run_on) values ('9999_newer', now())");
  const [said] = await runMigrate(database, ["--check"]);
  expect(said).toMatch(/newer than this server.*9999_newer/);
  expect(await readSchemaState(database.url)).toEqual({ kind: "ahead", unknown: ["9999_newer"] });
});

test("a server keeps working while a newer one adds a column, a table and an index", async () => {
  const database = await newDatabase();
  const server = await startTestServer(database.url);
  onTestFinished(() => server.stop());
  const { apiKey } = await createTenant(database);
  const client = connectClient(server, apiKey);
  await grant(client, { key: "before" });
  // One by one: Citus takes no two statements on a distributed table in one query.
  await database.query("alter table records add column newer int not null default 7");
  await database.query("alter table tenants add column newer text");
  await database.query("create table newer (id int primary key)");
  await database.query("create index newer_index on records (newer)");
  const { fencingToken } = await complete(client, success("paid"));
  const again = await client.complete({ ...ORDER, fencingToken, result: success("paid") });
  expect(again.alreadyCompleted).toBe(true);
  expect((await client.claim({ ...ORDER, key: "before" })).outcome.case).toBe("inProgress");
});
