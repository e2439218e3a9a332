import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { NAMED_COCKROACH } from "../support/database/other-engine.ts";
import { failed } from "../support/processes/cli.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor, startServe } from "../support/processes/serve.ts";

async function emptyDatabase(): Promise<string> {
  return (await createDatabaseOfTest("template0")).url;
}

test("an empty database is brought up to date; a second run changes nothing", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await emptyDatabase());
  const before = await runHere(["migrate", "--check"], settings);
  expect(before).toMatchObject(
    failed(1, /^The schema lacks 0001_initial.*\. Run: onceward-server migrate\n$/),
  );

  const first = await runCommand(["migrate"], workplace, settings);
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toMatch(/^ran 0001_initial\n(ran .*\n)*The schema is current\.\n$/);
  const nothingToDo = { exit: 0, stdout: "The schema is current.\n", stderr: "" };
  expect(await runHere(["migrate"], settings)).toEqual(nothingToDo);
  expect(await runHere(["migrate", "--check"], settings)).toEqual(nothingToDo);
});

test("of several concurrent migrations, one does the work, and all succeed", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await emptyDatabase());
  const all = await Promise.all([1, 2, 3].map(() => runCommand(["migrate"], workplace, settings)));
  const succeeded = {
    exit: 0,
    stderr: expect.stringMatching(/^(Another migrate is running; waiting for its end\.\n)?$/),
  };
  expect(all.map(({ exit, stderr }) => ({ exit, stderr }))).toEqual(Array(3).fill(succeeded));
  expect(all.filter(({ stdout }) => stdout.includes("ran 0001_initial"))).toHaveLength(1);
});

test("a database of an engine that breaks a promise is not migrated or served", async () => {
  const databaseUrl = await emptyDatabase();
  const name = new URL(databaseUrl).pathname.slice(1);
  await onDatabase(databaseUrl, NAMED_COCKROACH);
  await onDatabase(databaseUrl, `alter database ${name} set search_path = public, pg_catalog`);
  for (const command of [["migrate"], ["migrate", "--check"], ["serve"]]) {
    const ended = await runHere(command, settingsFor(databaseUrl));
    expect(ended).toMatchObject(
      failed(1, /^The database is CockroachDB, which is not supported\. now\(\) is the clock/),
    );
  }
});

test("a schema of a newer server is accepted and reported as newer", async () => {
  const workplace = await createWorkplace();
  const database = await createDatabaseOfTest();
  const settings = settingsFor(database.url);
  await database.query("insert into schema_migrations (name, run_on) values ('9999_later', now())");
  expect(await runHere(["migrate", "--check"], settings)).toEqual({
    exit: 0,
    stdout: "The schema is newer than this server, which can use it: 9999_later\n",
    stderr: "",
  });
  const serve = await startServe(workplace, settings);
  serve.signal("SIGTERM");
  expect(await serve.ended).toMatchObject({ exit: 0 });
});

test("DATABASE_DIRECT_URL selects the database that is migrated", async () => {
  const [pooled, direct] = [await emptyDatabase(), await emptyDatabase()];
  await runHere(["migrate"], { ...settingsFor(pooled), DATABASE_DIRECT_URL: direct });
  const check = (url: string) => runHere(["migrate", "--check"], settingsFor(url));
  const [ofPooled, ofDirect] = await Promise.all([check(pooled), check(direct)]);
  expect([ofPooled.exit, ofDirect.exit]).toEqual([1, 0]);
});

test("a search_path that leads to another schema than public is refused and changes nothing", async () => {
  const url = await emptyDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("create schema ow");
  await client.query(`alter database "${new URL(url).pathname.slice(1)}" set search_path = ow`);
  const ended = await runHere(["migrate"], settingsFor(url));
  expect(ended).toEqual({
    exit: 1,
    stdout: "",
    stderr:
      "The tables must be in the schema public, but search_path leads to ow: set it to public for this role and database.\n",
  });
  const { rows } = await client.query("select from pg_tables where schemaname in ('ow', 'public')");
  expect(rows).toEqual([]);
});

test("an unknown option is refused and changes nothing", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await emptyDatabase());
  const ended = await runCommand(["migrate", "--chekc"], workplace, settings);
  expect(ended).toMatchObject(failed(1, /^Unknown option '--chekc'/));
  expect(await runHere(["migrate", "--check"], settings)).toMatchObject({ exit: 1 });
});

async function onDatabase(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
