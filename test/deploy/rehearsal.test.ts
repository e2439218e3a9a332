import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import { runStatements } from "../helpers/database/statement-runner.ts";
import { describeWithPrograms } from "../helpers/deploy/programs.ts";
import { startPrometheus, type TestPrometheus } from "../helpers/deploy/prometheus.ts";
import { freePort } from "../helpers/redis/redis.ts";
import { type ServerProcess, startServerProcess } from "../helpers/servers/server-process.ts";

/** Alerts fire after a sixtieth of their time: seconds instead of minutes. */
const SPEED = 60;
const START_TIMEOUT_MS = 120_000;
/** Bounds a hung test; an alert comes within a few scrapes. */
const ALERT_TIMEOUT_MS = 60_000;

describeWithPrograms(["prometheus"], "one Prometheus of two installations", () => {
  let databases: readonly TestDatabase[] = [];
  let prometheus: TestPrometheus;
  let running: ServerProcess[] = [];

  beforeAll(async () => {
    databases = [await createTestDatabase(), await createTestDatabase()];
    prometheus = await startPrometheus({}, SPEED);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await prometheus?.stop();
    for (const replica of running) await replica.end();
    for (const database of databases) await database.drop();
  });

  async function start(database: TestDatabase | undefined, env: Readonly<Record<string, string>> = {}) {
    const replica = await startServerProcess(database?.url ?? "", env);
    running = [...running, replica];
    onTestFinished(() => replica.end());
    return replica;
  }

  /** Waits until this number of an installation's replicas is scraped. */
  async function untilScraped(job: string, count: number) {
    const scraped = () => prometheus.query(`count(onceward_build_info{job="${job}"})`);
    await expect.poll(scraped, { timeout: ALERT_TIMEOUT_MS, interval: 250 }).toEqual([count]);
  }

  /** Waits for an alert of an installation. */
  async function untilAlert(job: string, alertname: string) {
    const names = async (of: string) =>
      (await prometheus.firing()).filter((labels) => labels.job === of).map(({ alertname }) => alertname);
    await expect.poll(() => names(job), { timeout: ALERT_TIMEOUT_MS, interval: 250 }).toContain(alertname);
  }

  async function firingOf(job: string) {
    return (await prometheus.firing()).filter((labels) => labels.job === job);
  }

  test("an installation whose replicas are killed pages, whichever of the two it is", {
    timeout: 4 * ALERT_TIMEOUT_MS,
  }, async () => {
    for (const [dies, lives] of [
      ["onceward-kill-a", "onceward-kill-b"],
      ["onceward-kill-d", "onceward-kill-c"],
    ] as const) {
      const [first, second, other] = [
        await start(databases[0]),
        await start(databases[0]),
        await start(databases[1]),
      ];
      await prometheus.setTargets({ [dies]: [first, second], [lives]: [other] });
      await untilScraped(dies, 2);
      await untilScraped(lives, 1);
      await first.end();
      await untilAlert(dies, "OncewardReplicaMissing");
      expect((await firingOf(dies)).map(({ alertname }) => alertname)).not.toContain(
        "OncewardAllReplicasMissing",
      );
      await second.end();
      await untilAlert(dies, "OncewardAllReplicasMissing");
      expect(await firingOf(lives)).toEqual([]);
      await other.end();
    }
  });

  test("an installation whose targets vanish pages", { timeout: 3 * ALERT_TIMEOUT_MS }, async () => {
    const [gone, stays] = [await start(databases[0]), await start(databases[1])];
    await prometheus.setTargets({ "onceward-gone": [gone], "onceward-stays": [stays] });
    await untilScraped("onceward-gone", 1);
    await untilScraped("onceward-stays", 1);
    await prometheus.setTargets({ "onceward-stays": [stays] });
    await untilAlert("onceward-gone", "OncewardAllReplicasMissing");
    expect(await firingOf("onceward-stays")).toEqual([]);
  });

  test("a database that accepts no connection pages; Redis that is down is a ticket", {
    timeout: 4 * ALERT_TIMEOUT_MS,
  }, async () => {
    const bypassed = await start(databases[1], { REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
    const failing = await start(databases[0]);
    await prometheus.setTargets({ "onceward-database": [failing], "onceward-redis": [bypassed] });
    await untilScraped("onceward-database", 1);
    await untilAlert("onceward-redis", "OncewardRedisBypassed");
    const url = databases[0]?.url ?? "";
    const name = new URL(url).pathname.slice(1);
    await runStatements(
      inject("postgresUrl"),
      `alter database ${name} allow_connections false`,
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = '${name}' and application_name = 'onceward'`,
    );
    await untilAlert("onceward-database", "OncewardDatabaseUnreachable");
    expect((await firingOf("onceward-redis")).map(({ alertname }) => alertname)).toEqual([
      "OncewardRedisBypassed",
    ]);
  });
});
