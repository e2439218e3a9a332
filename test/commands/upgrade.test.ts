import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../helpers/calls/clients.ts";
import { grant, ORDER, success } from "../helpers/calls/verbs.ts";
import { openDatabase } from "../helpers/database/database.ts";
import { useOwnPostgres } from "../helpers/database/own-postgres.ts";
import { createWorkplace } from "../helpers/processes/command.ts";
import { followSteps, missingLine, stepsOf } from "../helpers/processes/follow-readme.ts";
import { findPreviousVersion, layOutVersion } from "../helpers/processes/previous-version.ts";
import { TEST_PEPPER } from "../helpers/servers/server.ts";
import { SERVER_PROGRAM, startServerProcess } from "../helpers/servers/server-process.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const MAIN = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));
const previous = await findPreviousVersion();
if (previous === undefined) {
  process.stderr.write(
    "The rehearsal of deploy/upgrade.md is left out: the clone lacks the previous version.\n",
  );
}

const postgres = useOwnPostgres({});
const key = (name: string) => ({ ...ORDER, key: name });

/** Claims and completes new keys until it is stopped; every call has to be answered as it should. */
function startLoad(client: IdempotencyClient) {
  let running = true;
  let pairs = 0;
  const done = (async () => {
    for (; running; pairs++) await finish(client, `load-${pairs}`);
  })();
  return {
    async stop(): Promise<number> {
      running = false;
      await done;
      return pairs;
    },
  };
}

async function finish(client: IdempotencyClient, name: string): Promise<void> {
  const { fencingToken } = await grant(client, key(name));
  await client.complete({ ...key(name), fencingToken, result: success(name) });
}

describe.runIf(previous !== undefined)("deploy/upgrade.md", () => {
  test("the previous version serves while the schema is migrated, beside the new version, and after a rollback", async () => {
    const old = await layOutVersion(previous ?? "");
    onTestFinished(old.remove);
    const url = await postgres.createDatabase();
    const database = openDatabase(url);
    onTestFinished(() => database.close());
    const workplace = await createWorkplace();

    /** Runs commands in which `onceward-server` is a version. */
    async function type(main: string, commands: readonly string[]) {
      const environment = [
        `export DATABASE_URL='${url}' ONCEWARD_API_KEY_PEPPER='${TEST_PEPPER}'`,
        `onceward-server() { ${process.execPath} ${main} "$@"; }`,
      ];
      const followed = await followSteps(workplace, [...environment, ...commands]);
      return followed.slice(environment.length);
    }
    async function start(program: readonly string[], apiKey: string) {
      const server = await startServerProcess(url, {}, program);
      onTestFinished(() => server.end());
      return { server, client: connectClient(server, apiKey) };
    }

    expect(await type(old.main, ["onceward-server migrate"])).toMatchObject([{ exit: 0 }]);
    const lacking = await type(MAIN, ["onceward-server migrate --check"]);
    expect(lacking).toMatchObject([{ exit: 1, output: expect.stringMatching(/^The schema lacks \d{4}_/) }]);
    const { apiKey } = await createTenant(database);
    const before = await start([old.main, "serve"], apiKey);
    await finish(before.client, "finished-before");
    const { fencingToken } = await grant(before.client, key("claimed-before"));

    const load = startLoad(before.client);
    const steps = await stepsOf("deploy/upgrade.md");
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
    expect(await load.stop()).toBeGreaterThan(0);

    const after = await start(SERVER_PROGRAM, apiKey);
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

    await Promise.all([before.server.end(), after.server.end()]);
    const rolledBack = await start([old.main, "serve"], apiKey);
    expect((await rolledBack.client.claim(key("finished-after"))).outcome.case).toBe("completed");
    await finish(rolledBack.client, "rolled-back");
  });
});
