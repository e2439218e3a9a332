import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { startProgram } from "../support/deploy/background-program.ts";
import { type Balancer, startBalancer } from "../support/deploy/balancer.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import {
  ALERT_TIMEOUT_MS,
  type Rehearsal,
  startClaims,
  startRehearsal,
} from "../support/deploy/rehearsal.ts";
import { freePort } from "../support/redis/redis.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";

const MODULES = fileURLToPath(new URL("../../deploy/prometheus/blackbox.yml", import.meta.url));
/** Divides the 10 minutes of a replica that gets no calls; the probe's alert has its own time. */
const SPEED = 60;
const START_TIMEOUT_MS = 120_000;
const PROGRAMS = ["prometheus", "haproxy", "prometheus-blackbox-exporter"] as const;

describeWithPrograms(PROGRAMS, "Prometheus beside a balancer", () => {
  let database: TestDatabase;
  let replicas: readonly [ServerProcess, ServerProcess];

  beforeAll(async () => {
    database = await createTestDatabase();
    replicas = await Promise.all([startServerProcess(database.url), startServerProcess(database.url)]);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    for (const replica of replicas ?? []) await replica.end();
    await database?.drop();
  });

  /** Starts Prometheus with a probe through the balancer, and claims through it, until the test ends. */
  async function rehearse(balancer: Balancer, speed: number): Promise<Rehearsal> {
    const exporter = `127.0.0.1:${await freePort()}`;
    const args = [`--config.file=${MODULES}`, `--web.listen-address=${exporter}`];
    const blackbox = await startProgram("prometheus-blackbox-exporter", args);
    const rehearsal = await startRehearsal(speed, { exporter, target: `127.0.0.1:${balancer.grpcPort}` });
    const { apiKey } = await createTenant(database);
    const stop = startClaims(connectClient(balancer, apiKey));
    onTestFinished(async () => {
      await stop();
      await rehearsal.stop();
      await blackbox.stop();
      await balancer.stop();
    });
    await rehearsal.scrape("onceward", replicas);
    return rehearsal;
  }

  test("a balancer that is down pages, and one that is up does not", {
    timeout: 3 * ALERT_TIMEOUT_MS,
  }, async () => {
    const balancer = await startBalancer(replicas);
    const rehearsal = await rehearse(balancer, 1);
    expect(await rehearsal.firing("onceward")).toEqual([]);
    await balancer.stop();
    await rehearsal.untilAlerts("onceward", "OncewardProbeFails");
  });

  test("a replica that the balancer leaves out is named", { timeout: 3 * ALERT_TIMEOUT_MS }, async () => {
    const [used] = replicas;
    const rehearsal = await rehearse(await startBalancer([used, used]), SPEED);
    // On a busy machine the claims are slow, too, which has an alert of its own.
    await rehearsal.untilAlerts("onceward", "OncewardReplicaWithoutCalls");
  });
});
