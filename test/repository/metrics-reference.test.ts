import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";

const PAGE = new URL("../../server/metrics.md", import.meta.url);

/** Returns each metric of the page as `name{labels} type`, sorted. */
async function documentedMetrics(): Promise<string[]> {
  const rows = (await readFile(PAGE, "utf8")).matchAll(
    /^\| `(onceward_[a-z_]+(?:\{[a-z,]+\})?)` \| (\w+) \|/gm,
  );
  return [...rows].map(([, metric, type]) => `${metric} ${type}`).sort();
}

/** Returns each metric that the server exports, in the same form. */
async function exportedMetrics(): Promise<string[]> {
  const metrics = createMetrics("0.0.0");
  metrics.watch({
    pool: () => ({ total: 0, idle: 0, waiting: 0 }),
    waiters: () => 0,
    liveReplicas: () => 1,
    cacheBytes: () => 0,
    degraded: () => ({}),
    callsInFlight: () => 0,
    connections: () => ({}),
    ambiguousRecords: () => new Map(),
    databaseClockMovedMs: () => 0,
    tlsExpiresInS: () => new Map(),
  });
  return metrics
    .describe()
    .filter(({ name }) => name.startsWith("onceward_"))
    .map(({ name, type, labelNames }) => {
      const labels = labelNames.length === 0 ? "" : `{${labelNames.join(",")}}`;
      return `${name}${labels} ${type}`;
    })
    .sort();
}

test("server/metrics.md lists exactly the server's metrics with their types and labels", async () => {
  expect(await documentedMetrics()).toEqual(await exportedMetrics());
});
