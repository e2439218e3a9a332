import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { runStatements } from "../support/database/statement-runner.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { startPrometheus } from "../support/deploy/prometheus.ts";
import { ALERT_TIMEOUT_MS, type Rehearsal, startRehearsal } from "../support/deploy/rehearsal.ts";
import { freePort } from "../support/redis/redis.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";

/** Alerts fire after a sixtieth of their time: seconds instead of minutes. */
const SPEED = 60;
const START_TIMEOUT_MS = 120_000;
const TEST = { timeout: 8 * ALERT_TIMEOUT_MS };

describeWithPrograms(["prometheus"], "one Prometheus of two installations", () => {
  let databases: readonly TestDatabase[] = [];
  let rehearsal: Rehearsal;
  const running: ServerProcess[] = [];

  beforeAll(async () => {
    databases = await Promise.all(Array.from({ length: 4 }, () => createTestDatabase()));
    rehearsal = await startRehearsal(SPEED);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await rehearsal?.stop();
    for (const replica of running) await replica.end();
    for (const database of databases) await database.drop();
  });

  async function start(database: TestDatabase | undefined, env: Readonly<Record<string, string>> = {}) {
    const replica = await startServerProcess(database?.url ?? "", env);
    running.push(replica);
    return replica;
  }

  // They wait for scrapes, each with its own installations.
  describe.concurrent("each", () => {
    // The names are in either order, by which Prometheus sorts.
    test.for([
      ["onceward-kill-a", "onceward-kill-b"],
      ["onceward-kill-d", "onceward-kill-c"],
    ] as const)("whose replicas are killed pages: %s beside %s", TEST, async ([dies, lives]) => {
      const [first, second, other] = [
        await start(databases[0]),
        await start(databases[0]),
        await start(databases[1]),
      ];
      await rehearsal.scrape(dies, [first, second]);
      await rehearsal.scrape(lives, [other]);
      await first.end();
      await rehearsal.untilOnly(dies, "OncewardReplicaMissing");
      await second.end();
      await rehearsal.untilAlerts(dies, "OncewardAllReplicasMissing");
      expect(await rehearsal.firing(lives)).toEqual([]);
      await other.end();
    });

    test("whose targets vanish pages, and no longer when they are back", TEST, async () => {
      const [one, two] = ["onceward-gone-a", "onceward-gone-b"];
      const [ofOne, ofTwo] = [await start(databases[0]), await start(databases[1])];
      await rehearsal.scrape(one, [ofOne]);
      await rehearsal.scrape(two, [ofTwo]);
      await rehearsal.scrape(one, []);
      await rehearsal.untilOnly(one, "OncewardAllReplicasMissing");
      expect(await rehearsal.firing(two)).toEqual([]);
      await rehearsal.scrape(one, [ofOne]);
      await rehearsal.scrape(two, []);
      await rehearsal.untilOnly(two, "OncewardAllReplicasMissing");
      await rehearsal.untilOnly(one);
    });

    test("whose database accepts no connection pages, and no longer when it does", TEST, async () => {
      const installations = [
        { job: "onceward-database-a", database: databases[2] },
        { job: "onceward-database-b", database: databases[3] },
      ];
      for (const { job, database } of installations) await rehearsal.scrape(job, [await start(database)]);
      for (const { job, database } of installations) {
        await acceptConnections(database, false);
        await rehearsal.untilAlerts(job, "OncewardDatabaseUnreachable");
        for (const other of installations.filter((each) => each.job !== job)) {
          expect(await rehearsal.firing(other.job)).not.toContain("OncewardDatabaseUnreachable");
        }
        await acceptConnections(database, true);
        await rehearsal.untilOnly(job);
      }
    });

    test("whose Redis is down is a ticket, one after the other", TEST, async () => {
      const withoutRedis = { REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
      const [healthy, bypassed] = [await start(databases[0]), await start(databases[1], withoutRedis)];
      await rehearsal.scrape("onceward-redis-a", [healthy]);
      await rehearsal.scrape("onceward-redis-b", [bypassed]);
      await rehearsal.untilOnly("onceward-redis-b", "OncewardRedisBypassed");
      expect(await rehearsal.firing("onceward-redis-a")).toEqual([]);
      await rehearsal.scrape("onceward-redis-a", [bypassed]);
      await rehearsal.scrape("onceward-redis-b", [healthy]);
      await rehearsal.untilOnly("onceward-redis-a", "OncewardRedisBypassed");
      await rehearsal.untilOnly("onceward-redis-b");
    });
  });
});

describeWithPrograms(["prometheus"], "with the alerts' own times", () => {
  test("Postgres down for 20 s pages no one, although the alert waits for its time", TEST, async () => {
    const database = await createTestDatabase();
    const prometheus = await startPrometheus({});
    const replica = await startServerProcess(database.url, {});
    onTestFinished(async () => {
      await replica.end();
      await prometheus.stop();
      await database.drop();
    });
    const job = "onceward-failover";
    prometheus.setTargets({ [job]: [replica] });
    // On a busy machine a missed scrape makes another alert wait, too.
    const pending = `ALERTS{job="${job}", alertname="OncewardDatabaseUnreachable", alertstate="pending"}`;
    const samplesPending = async () =>
      Math.max(...(await prometheus.query(`count_over_time(${pending}[10m])`)));
    const away = () => prometheus.query(`onceward_degraded{job="${job}", reason="database_unreachable"}`);
    const patience = { timeout: ALERT_TIMEOUT_MS, interval: 250 };

    await expect.poll(away, patience).toEqual([0]);
    await acceptConnections(database, false);
    // Rules are evaluated every second; the replica notices within a heartbeat, 3 s.
    await expect.poll(samplesPending, patience).toBeGreaterThanOrEqual(15);
    await acceptConnections(database, true);
    await expect.poll(away, patience).toEqual([0]);
    expect(await prometheus.query(`count_over_time(ALERTS{job="${job}", alertstate="firing"}[10m])`)).toEqual(
      [],
    );
  });
});

/** Lets replicas connect to a database, or ends their connections and refuses new ones. */
async function acceptConnections(database: TestDatabase | undefined, accepted: boolean): Promise<void> {
  const name = new URL(database?.url ?? "").pathname.slice(1);
  await runStatements(
    inject("postgresUrl"),
    `alter database ${name} allow_connections ${accepted}`,
    ...(accepted
      ? []
      : [
          `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = '${name}' and application_name = 'onceward'`,
        ]),
  );
}
