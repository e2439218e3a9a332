import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { factsOf, VARIABLES } from "../../server/src/config/variables.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";

/** Returns every name in a text that begins with `onceward_`, sorted. */
function metricNames(text: string): string[] {
  return [...new Set(text.match(/\bonceward_[a-z_]+/g) ?? [])].sort();
}

test("server/README.md lists exactly the metrics that the server exports", async () => {
  const metrics = createMetrics("0.0.0");
  metrics.watch({
    pool: () => ({ total: 0, idle: 0, waiting: 0 }),
    waiters: () => 0,
    liveReplicas: () => 1,
    cacheBytes: () => 0,
    degraded: () => ({}),
  });
  const rendered = await metrics.render();
  const existing = metricNames(rendered.replace(/^[^#].*$/gm, ""));
  const readme = await readFile(new URL("../../server/README.md", import.meta.url), "utf8");
  // Default names of tokens' claims also begin with `onceward_`.
  const claims = new Set<unknown>(Object.values(VARIABLES).map((schema) => factsOf(schema).fallback));
  expect(metricNames(readme).filter((name) => !claims.has(name))).toEqual(existing);
});
