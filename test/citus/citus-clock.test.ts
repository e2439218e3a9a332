import { expect, onTestFinished, test } from "vitest";
import { setClockAhead, useSettableClock } from "../support/database/clock.ts";
import { createDatabaseOfTest, openNodes } from "../support/database/database.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

test("a replica reports a worker whose clock is wrong, and doctor names the worker", async () => {
  const database = await createDatabaseOfTest();
  const nodes = openNodes(database);
  onTestFinished(async () => {
    for (const node of nodes) await node.close();
  });
  const [, worker] = nodes;
  if (worker === undefined) throw new Error("there is no worker");
  await useSettableClock(worker);
  const server = await startServerOfTest(database.url, {}, { degradedLookMs: 10, heartbeatMs: 50 });
  const isSkewed = async () => (await readMetrics(server)).get('onceward_degraded{reason="clock_skewed"}');
  expect(await isSkewed()).toBe(0);
  await setClockAhead(worker, 10);
  await expect.poll(isSkewed, { timeout: 30_000 }).toBe(1);
  const { findings } = await diagnoseDatabase(database.url);
  expect(findings.filter(({ id }) => id === "citus_clock_skewed")).toEqual([
    expect.objectContaining({
      summary: expect.stringContaining(`:${new URL(worker.url).port} is 600.0 s ahead`),
    }),
  ]);
  await setClockAhead(worker, 0);
  await expect.poll(isSkewed, { timeout: 30_000 }).toBe(0);
});
