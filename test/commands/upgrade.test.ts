import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { copyRecord } from "../support/calls/records.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { type OpenDatabase, openDatabase } from "../support/database/database.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { createWorkplace, type Workplace } from "../support/processes/command.ts";
import { followSteps, missingLine, stepsOf } from "../support/processes/follow-readme.ts";
import { findPreviousVersion, layOutVersion } from "../support/processes/previous-version.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";
import { SERVER_PROGRAM, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";

const MAIN = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));

/**
 * By hand: ONCEWARD_REHEARSAL_RECORDS=1000000 ONCEWARD_REHEARSAL_OPEN_S=300
 * (server/decisions/0020-migrations-beside-callers.md). Then the longest call is measured, too.
 */
const { ONCEWARD_REHEARSAL_RECORDS, ONCEWARD_REHEARSAL_OPEN_S = "0" } = process.env;
const byHand = ONCEWARD_REHEARSAL_RECORDS !== undefined;
const RECORDS = Number(ONCEWARD_REHEARSAL_RECORDS ?? 25_000);
const TIMEOUT_MS = byHand ? 1_800_000 : 120_000;

const previous = await findPreviousVersion();
if (previous === undefined) {
  process.stderr.write(
    "The rehearsal of deploy/upgrade.md is skipped: the clone lacks the previous version.\n",
  );
}

const postgres = useOwnPostgres({});
const key = (name: string) => ({ ...ORDER, key: name });

/** Claims and completes new keys until it is stopped; a call that waits for a lock for 1 s is refused. */
function startLoad(client: IdempotencyClient) {
  let running = true;
  let longestMs = 0;
  const done = (async () => {
    let pairs = 0;
    for (; running; pairs++) {
      const startedAtMs = performance.now();
      await finish(client, `load-${pairs}`);
      longestMs = Math.max(longestMs, performance.now() - startedAtMs);
    }
    return pairs;
  })();
  done.catch(() => {});
  return {
    async stop(): Promise<void> {
      running = false;
      expect(await done).toBeGreaterThan(0);
      if (!byHand) return;
      process.stderr.write(`longest claim and completion: ${Math.round(longestMs)} ms\n`);
      expect(longestMs).toBeLessThan(1000);
    },
  };
}

async function finish(client: IdempotencyClient, name: string): Promise<void> {
  const { fencingToken } = await grant(client, key(name));
  await client.complete({ ...key(name), fencingToken, result: success(name) });
}

/**
 * Leaves a transaction open that has read each table and changed a record, until a migration has waited for it
 * (by hand: and for the seconds of ONCEWARD_REHEARSAL_OPEN_S).
 */
async function leaveTransactionOpen(url: string, database: OpenDatabase) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const tables = await database.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  );
  await client.query("begin");
  await client.query("update records set owner = owner where key = 'copy-1'");
  for (const { name } of tables) await client.query(`select from ${name} limit 1`);
  const ended = (async () => {
    await expect
      .poll(
        () =>
          database.query(
            "select from pg_stat_activity where application_name = 'onceward migrate' and wait_event_type = 'Lock'",
          ),
        { timeout: TIMEOUT_MS, interval: 10 },
      )
      .not.toEqual([]);
    await delay(Number(ONCEWARD_REHEARSAL_OPEN_S) * 1000);
    await client.query("commit");
    await client.end();
  })();
  ended.catch(() => {});
  return { ended };
}

/** A database with a tenant and records of an old version, whose replica serves it. */
async function installPreviousVersion() {
  const old = await layOutVersion(previous ?? "");
  onTestFinished(old.remove);
  const url = await postgres.createDatabase();
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  const workplace = await createWorkplace();

  /** Runs commands in which `onceward-server` is a version. */
  async function type(main: string, commands: readonly string[]) {
    return typeCommands(workplace, url, main, commands);
  }
  expect(await type(old.main, ["onceward-server migrate"])).toMatchObject([{ exit: 0 }]);
  const tenant = await createTenant(database);
  async function start(program: readonly string[]) {
    const server = await startServerProcess(url, {}, program);
    onTestFinished(() => server.end());
    return { server, client: connectClient(server, tenant.apiKey) };
  }
  const before = await start([old.main, "serve"]);
  await finish(before.client, "finished-before");
  await copyRecord(database, tenant, "finished-before", { count: RECORDS, keySql: "'copy-' || n" });
  return { old, url, database, type, start, before };
}

async function typeCommands(workplace: Workplace, url: string, main: string, commands: readonly string[]) {
  const environment = [
    `export DATABASE_URL='${url}' ONCEWARD_API_KEY_PEPPER='${TEST_PEPPER}'`,
    `onceward-server() { ${process.execPath} ${main} "$@"; }`,
  ];
  const followed = await followSteps(workplace, [...environment, ...commands]);
  return followed.slice(environment.length);
}

describe.runIf(previous !== undefined)("deploy/upgrade.md", { timeout: TIMEOUT_MS }, () => {
  test("the previous version serves beside migrations, beside the new version, after a rollback", async () => {
    const { old, url, database, type, start, before } = await installPreviousVersion();
    const lacking = await type(MAIN, ["onceward-server migrate --check"]);
    expect(lacking).toMatchObject([{ exit: 1, output: expect.stringMatching(/^The schema lacks \d{4}_/) }]);
    const { fencingToken } = await grant(before.client, key("claimed-before"));

    const load = startLoad(before.client);
    const transaction = await leaveTransactionOpen(url, database);
    const steps = await stepsOf("deploy/upgrade.md", "Upgrade");
    const followed = await type(
      MAIN,
      steps.map(({ command }) => command),
    );
    for (const [index, { command, printed }] of steps.entries()) {
      const { exit, output = "" } = followed[index] ?? {};
      expect({ command, exit, output }).toEqual({ command, exit: 0, output });
      expect({ command, output, missing: missingLine(printed, output) }).toMatchObject({
        missing: undefined,
      });
    }
    await transaction.ended;
    await load.stop();

    const after = await start(SERVER_PROGRAM);
    expect((await after.client.claim(key("finished-before"))).outcome.case).toBe("completed");
    await after.client.complete({ ...key("claimed-before"), fencingToken, result: success("done") });
    await finish(after.client, "finished-after");
    const { fencingToken: newer } = await grant(after.client, key("claimed-after"));
    await before.client.complete({ ...key("claimed-after"), fencingToken: newer, result: success("done") });
    for (const { client } of [before, after]) {
      for (const name of ["claimed-before", "finished-after", "claimed-after"]) {
        expect((await client.claim(key(name))).outcome.case).toBe("completed");
      }
    }

    const newest = await grant(after.client, key("claimed-by-both"));
    await database.query("delete from records where key = 'claimed-by-both'");
    const later = await grant(before.client, key("claimed-by-both"));
    expect(later.fencingToken).toBeGreaterThan(newest.fencingToken);

    await Promise.all([before.server.end(), after.server.end()]);
    const rolledBack = await start([old.main, "serve"]);
    expect((await rolledBack.client.claim(key("finished-after"))).outcome.case).toBe("completed");
  });
});
