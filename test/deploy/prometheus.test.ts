import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Addresses } from "../../server/src/replica/server.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { endLeases } from "../support/calls/records.ts";
import { fingerprintOf, seconds, success } from "../support/calls/verbs.ts";
import type { TestDatabase } from "../support/database/database.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { ALERTS, PANEL_EXPRESSIONS } from "../support/deploy/expressions.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { startPrometheus, type TestPrometheus } from "../support/deploy/prometheus.ts";
import { describeWithRedis, startRedis, type TestRedis } from "../support/redis/redis.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";

/** Callers of every kind, until `stop`. */
interface MixedLoad {
  /** Resolves after the current round of each caller; rejects with the first unexpected error. */
  stop(): Promise<void>;
}

/** Pause between two rounds: the load must leave time to Prometheus. */
const PAUSE_MS = 50;
const WAIT_S = 0.2;

/**
 * Starts claims, repeats, completions, batches, waiting claims, errors and refusals by a quota on all
 * replicas, and leaves an ambiguous record.
 */
async function startMixedLoad(database: TestDatabase, replicas: readonly Addresses[]): Promise<MixedLoad> {
  const tenant = await createTenant(database);
  const limited = await createTenant(database, { quota_operations_per_second: 1, quota_burst: 1 });
  await setNamespacePolicy(database, tenant, "payouts", { on_lease_expiry: "HOLD" });
  const clients = replicas.map((replica) => connectClient(replica, tenant.apiKey));
  const limitedClients = replicas.map((replica) => connectClient(replica, limited.apiKey));
  const [first, ...others] = clients as [IdempotencyClient, ...IdempotencyClient[]];
  await first.claim({ namespace: "payouts", key: "payout-1" });
  await endLeases(database, tenant, "payout-1");

  /** One caller's key: a first claim, its repeats on every replica, and what is refused. */
  async function round(): Promise<void> {
    const id = { namespace: "charges", key: randomUUID(), fingerprint: fingerprintOf("order") };
    const claim = { ...id, claimId: randomUUID() };
    const { outcome } = await first.claim(claim);
    if (outcome.case !== "claimed") throw new Error(`a fresh key was answered ${outcome.case}`);
    const { fencingToken } = outcome.value;
    const waiting = others.map((client) => client.claim({ ...id, wait: seconds(WAIT_S) }));
    await first.extendLease({ ...id, fencingToken });
    await Promise.all(waiting);
    await first.complete({ ...id, fencingToken, result: success("paid") });
    const asked = { case: "claim", value: id } as const;
    await Promise.all(
      clients.flatMap((client) => [
        client.claim(id),
        client.lookup(id),
        client.batch({ items: [{ request: asked }, { request: { case: "lookup", value: id } }] }),
        client.claim({ namespace: "payouts", key: "payout-1" }),
        refused(client.claim({ ...id, fingerprint: fingerprintOf("another") })),
        refused(client.release({ ...id, fencingToken })),
      ]),
    );
    await Promise.all(limitedClients.map((client) => client.claim(id).catch(() => {})));
  }

  let stopping = false;
  const running = (async () => {
    while (!stopping) {
      await round();
      await delay(PAUSE_MS);
    }
  })();
  // `stop` rethrows it.
  running.catch(() => {});
  return {
    stop() {
      stopping = true;
      return running;
    },
  };
}

/** @throws Error if the call is not refused. */
async function refused(call: Promise<unknown>): Promise<void> {
  const isRefused = await call.then(
    () => false,
    () => true,
  );
  if (!isRefused) throw new Error("a call was not refused");
}

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
 * What there is no data for here: a metric of replicas with TLS, which `server/src/transport/tls.test.ts` reads; a probe, of
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
    const database = useDatabase();
    let redis: TestRedis;
    let replicas: readonly ServerProcess[] = [];
    let load: MixedLoad;
    let prometheus: TestPrometheus;

    beforeAll(async () => {
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
