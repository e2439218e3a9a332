import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import { ALERTS, PANEL_EXPRESSIONS } from "../helpers/deploy/expressions.ts";
import { type MixedLoad, startMixedLoad } from "../helpers/deploy/mixed-load.ts";
import { describeWithPrograms } from "../helpers/deploy/programs.ts";
import { startPrometheus, type TestPrometheus } from "../helpers/deploy/prometheus.ts";
import { describeWithRedis, startRedis, type TestRedis } from "../helpers/redis/redis.ts";
import { type ServerProcess, startServerProcess } from "../helpers/servers/server-process.ts";

/** Data comes within two scrapes, and for tenants within seconds after their first calls. */
const DATA_TIMEOUT_MS = 60_000;
const TIMEOUT_MS = 2 * DATA_TIMEOUT_MS;

/** The values of the dashboards' variables. */
const VARIABLES = {
  $__rate_interval: "1m",
  $job: "onceward",
  $instance: ".*",
  $tenant: ".*",
};

/** The expressions of the panels, as Grafana sends them. */
const PANELS = PANEL_EXPRESSIONS.map(({ where, expr }) => ({
  where,
  expr: Object.entries(VARIABLES).reduce((text, [name, value]) => text.replaceAll(name, value), expr),
}));

/**
 * What there is no data for here: a metric of replicas with TLS, which `server/src/core/transport/tls.test.ts` reads; a probe, of
 * `rehearsal-balancer.test.ts`; and the calls of half an hour ago.
 */
const WITHOUT_DATA = /onceward_tls_expires_in_seconds|probe_success|offset 15m/;

/**
 * The expressions of the alerts with comparisons that return 0 or 1 for every series, in place of none for
 * those that do not fire. Exceptions (`unless`) would then remove every series: what is before them is read.
 */
const COMPARED = ALERTS.filter(({ expr }) => !WITHOUT_DATA.test(expr)).map(({ alert, expr }) => ({
  where: alert,
  expr: expr
    .replace(/^\(\s+(.*)\s+unless on \(job\)[\s\S]*$/, "$1")
    .replace(/\s+unless on \(job\)[\s\S]*$/, "")
    .replace(/(\s)(>|==|<) /g, "$1$2 bool "),
}));

describeWithPrograms(["prometheus"], "Prometheus", () => {
  describeWithRedis("scraping two replicas under load", () => {
    let database: TestDatabase;
    let redis: TestRedis;
    let replicas: readonly ServerProcess[] = [];
    let load: MixedLoad;
    let prometheus: TestPrometheus;

    beforeAll(async () => {
      database = await createTestDatabase();
      redis = await startRedis();
      const env = { REDIS_URL: redis.url, ONCEWARD_SWEEP_INTERVAL: "200ms" };
      replicas = await Promise.all([0, 1].map(() => startServerProcess(database.url, env)));
      prometheus = await startPrometheus({ onceward: replicas });
      load = await startMixedLoad(database, replicas);
    });

    afterAll(async () => {
      await load?.stop();
      await prometheus?.stop();
      for (const replica of replicas) await replica.end();
      await redis?.stop();
      await database?.drop();
    });

    test("every expression of the dashboards and alerts returns data", { timeout: TIMEOUT_MS }, async () => {
      let missing = [...PANELS, ...COMPARED];
      const stillMissing = async () => {
        const answers = await Promise.all(missing.map(({ expr }) => prometheus.query(expr)));
        missing = missing.filter((_, index) => answers[index]?.every(Number.isNaN));
        return missing;
      };
      await expect.poll(stillMissing, { timeout: DATA_TIMEOUT_MS, interval: 500 }).toEqual([]);
    });
  });
});
