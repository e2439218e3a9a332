import { readdir } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ensureDemoTenant } from "../../server/dev/demo-tenant.ts";
import { findRedisProgram } from "../../server/dev/embedded/redis.ts";
import { waitUntil } from "../../server/dev/embedded/wait.ts";
import { ensureDevSecrets } from "../../server/dev/secrets.ts";
import { runMigrations } from "../../server/src/commands/schema.ts";
import { readConfig } from "../../server/src/config/config.ts";
import { openConnection } from "../support/database/connections.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { failed } from "../support/processes/cli.ts";
import {
  createWorkplace,
  createWorkplaceWithCluster,
  FREE_PORTS,
  startDevServer,
  startNpm,
  type Workplace,
} from "../support/processes/command.ts";
import { expectNothingLeft, pressCtrlC, processesOf, startDev } from "../support/processes/dev.ts";

const MOMENT_TIMEOUT_MS = 20_000;
/** A Postgres that `npm start` did not start. */
const elsewhere = useOwnPostgres();

test("the banner's example claims a key and gets its result; claims are kept for the next run", async () => {
  const workplace = await createWorkplaceWithCluster();
  const first = await startDev(workplace);
  const payload = Buffer.from('{"id":"ch_1"}').toString("base64");
  expect(await first.followExample()).toMatchObject([
    { claimed: { attempt: 1 } },
    { completedAt: expect.any(String) },
    { completed: { result: { payload } } },
  ]);
  expect(await first.call()).toMatchObject({ claimed: { attempt: 1 } });
  await pressCtrlC(first);
  await expectNothingLeft(workplace);

  const second = await startDev(workplace);
  expect(second.callerKey).toBe(first.callerKey);
  expect(await second.call()).toMatchObject({ inProgress: { attempt: 1 } });
  await pressCtrlC(second);
});

test("two concurrent starts in one directory share its database; the last stops it", async () => {
  const workplace = await createWorkplace();
  const [first, second] = await Promise.all([startDev(workplace), startDev(workplace)]);
  expect(second.callerKey).toBe(first.callerKey);
  expect(await first.call()).toHaveProperty("claimed");
  expect(await second.call()).toHaveProperty("inProgress");
  await pressCtrlC(first);
  expect(await second.call()).toHaveProperty("inProgress");
  await pressCtrlC(second);
  await expectNothingLeft(workplace);
});

test("eight starts that create the demo tenant at once create it and its keys once", async () => {
  const { dir } = await createWorkplace();
  const secrets = await ensureDevSecrets(dir);
  const url = await elsewhere.createDatabase();
  const config = readConfig({ DATABASE_URL: url, ONCEWARD_API_KEY_PEPPER: secrets.pepper });
  await runMigrations(config, () => {});
  await Promise.all(Array.from({ length: 8 }, () => ensureDemoTenant(config, secrets)));
  const connection = await openConnection({ url });
  const { rows } = await connection.query("select role from api_keys order by role");
  expect(rows).toEqual([{ role: "CALLER" }, { role: "OPERATOR" }, { role: "TENANT_ADMIN" }]);
});

test("an error about ports in use names each port and its variable, and nothing is left behind", async () => {
  const workplace = await createWorkplaceWithCluster();
  const port = await takePort();
  const variables = Object.keys(FREE_PORTS);
  for (const taken of [variables, variables.slice(-1)]) {
    const ports = Object.fromEntries(taken.map((variable) => [variable, String(port)]));
    const ended = await startDevServer(workplace, { ...FREE_PORTS, ...ports }).ended;
    expect(ended.exit).toBe(1);
    for (const variable of taken)
      expect(ended.stderr).toContain(
        `cannot listen on 127.0.0.1 port ${port}: is it taken? ${variable} sets another one`,
      );
    expect(ended.stderr.match(/cannot listen/g)).toHaveLength(taken.length);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
    // Redis had just been connected.
    expect(ended.stdout).not.toMatch(/Redis failed/);
    await expectNothingLeft(workplace);
  }
});

test("npm start ends in order if only its own process gets the signal, as from a supervisor", async () => {
  const workplace = await createWorkplaceWithCluster();
  const npm = await startNpm(workplace, FREE_PORTS);
  await npm.untilPrinted(/Ctrl-C stops it/);
  process.kill(npm.pid, "SIGTERM");
  await npm.untilPrinted(/Stopped. Claims are kept/);
  await npm.ended;
  await expectNothingLeft(workplace);
});

test("npm start ends in order at Ctrl-C, which the server receives twice", async () => {
  const workplace = await createWorkplaceWithCluster();
  const npm = await startNpm(workplace, FREE_PORTS);
  await npm.untilPrinted(/Ctrl-C stops it/);
  npm.signal("SIGINT");
  await npm.untilPrinted(/Stopped. Claims are kept/);
  await npm.ended;
  await expectNothingLeft(workplace);
});

test("the service reports once that its output was closed, continues, and ends in order", async () => {
  const workplace = await createWorkplaceWithCluster();
  // At this level each call writes to the output.
  const dev = await startDev(workplace, { ONCEWARD_LOG_LEVEL: "debug" });
  await dev.closeOutput();
  expect(await dev.call()).toHaveProperty("claimed");
  expect(await dev.call()).toHaveProperty("inProgress");
  dev.signal("SIGINT");
  expect(await dev.ended).toMatchObject({
    exit: 0,
    stderr: "Standard output was closed: the service continues without it. Ctrl-C stops it.\n",
  });
  await expectNothingLeft(workplace);
});

test("--help prints what npm start does; an unknown option is refused; neither starts anything", async () => {
  const workplace = await createWorkplace();
  const helped = await startDevServer(workplace, {}, ["--help"]).ended;
  expect(helped).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(/^npm start\n\n.*ONCEWARD_HTTP_PORT/s),
  });
  const refused = await startDevServer(workplace, {}, ["--port", "1"]).ended;
  expect(refused).toMatchObject(failed(1, /^Unknown option '--port'/));
  expect(await readdir(workplace.dir)).toEqual(["tmp"]);
});

/** Where the start begins, and a check that it has come this far, by files in the workplace. */
const MOMENTS: readonly [string, () => Promise<Workplace>, (workplace: Workplace) => Promise<boolean>][] = [
  ["it has just begun", createWorkplaceWithCluster, async () => true],
  ["the cluster is being made", createWorkplace, ({ dir }) => holds(join(dir, ".onceward"), "postgres.init")],
  [
    "Postgres is being started",
    createWorkplaceWithCluster,
    (place) => holds(place.temporaryDir, "onceward-"),
  ],
];

test.each(MOMENTS)("Ctrl-C when %s leaves nothing behind", async (_, createPlace, hasCome) => {
  const workplace = await createPlace();
  const dev = startDevServer(workplace, FREE_PORTS);
  await dev.untilPrinted(/Starting PostgreSQL/);
  expect(await waitUntil(() => hasCome(workplace), MOMENT_TIMEOUT_MS)).toBe(true);
  await pressCtrlC(dev);
  await expectNothingLeft(workplace);
  await pressCtrlC(await startDev(workplace));
});

test("a start after SIGKILL uses the existing data", async () => {
  const workplace = await createWorkplaceWithCluster();
  const killed = await startDev(workplace);
  expect(await killed.call()).toHaveProperty("claimed");
  killed.signal("SIGKILL");
  expect(await killed.ended).toMatchObject({ exit: "SIGKILL" });

  const next = await startDev(workplace);
  expect(await next.call()).toHaveProperty("inProgress");
  await pressCtrlC(next);
  await expectNothingLeft(workplace);
});

test("a second Ctrl-C ends it at once", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace, { ONCEWARD_DRAIN_DELAY: "5m" });
  dev.signal("SIGINT");
  const draining = async () => (await fetch(`${dev.managementUrl}/readyz`)).status === 503;
  expect(await waitUntil(draining, MOMENT_TIMEOUT_MS)).toBe(true);
  let ended = false;
  void dev.ended.then(() => {
    ended = true;
  });
  // A signal within a second counts as the first one, forwarded.
  const presses = async () => {
    if (!ended) dev.signal("SIGINT");
    return ended;
  };
  expect(await waitUntil(presses, MOMENT_TIMEOUT_MS)).toBe(true);
  expect(await dev.ended).toMatchObject({ exit: 1 });
});

test("DATABASE_URL selects the database, and no Postgres is started", async () => {
  const workplace = await createWorkplace();
  const dev = await startDev(workplace, { DATABASE_URL: await elsewhere.createDatabase() });
  expect(await dev.call()).toHaveProperty("claimed");
  expect((await readdir(join(workplace.dir, ".onceward"))).sort()).toEqual([
    "admin.key",
    "caller.key",
    "dev-secrets.json",
    "operator.key",
  ]);
  const started = await processesOf(workplace);
  expect(started.filter((commandLine) => commandLine.includes("postgres"))).toEqual([]);
  await pressCtrlC(dev);
});

test.runIf(await findRedisProgram(process.env.PATH ?? ""))(
  "an installed Redis is started, and ends with dev, even if dev is killed",
  async () => {
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    // The replica serves before it is connected to Redis.
    await expect
      .poll(async () => (await fetch(`${dev.managementUrl}/metrics`)).text(), { timeout: MOMENT_TIMEOUT_MS })
      .toContain('onceward_degraded{reason="redis_bypassed"} 0');
    expect(await redisProcesses(workplace)).not.toEqual([]);
    dev.signal("SIGKILL");
    expect(
      await waitUntil(async () => (await redisProcesses(workplace)).length === 0, MOMENT_TIMEOUT_MS),
    ).toBe(true);
  },
);

test("without Redis on the PATH dev serves, and reports that there is none", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace, { PATH: dirname(process.execPath) });
  await dev.untilPrinted(/Redis +none/);
  expect(await dev.call()).toHaveProperty("claimed");
  await pressCtrlC(dev);
});

async function redisProcesses(workplace: Workplace): Promise<readonly string[]> {
  return (await processesOf(workplace)).filter((commandLine) => commandLine.includes("redis.sock"));
}

/** Returns a port of 127.0.0.1 that is in use until the end of the test. */
async function takePort(): Promise<number> {
  const server = createServer();
  onTestFinished(() => void server.close());
  await promisify<number, string>(server.listen.bind(server))(0, "127.0.0.1");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the port has no number");
  return address.port;
}

async function holds(dir: string, prefix: string): Promise<boolean> {
  return (await readdir(dir)).some((name) => name.startsWith(prefix));
}
