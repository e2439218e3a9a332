import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { VARIABLES } from "../../server/src/config/config.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";

/** Every name that begins with `onceward_` in a text. */
function metricNames(text: string): string[] {
  return [...new Set(text.match(/\bonceward_[a-z_]+/g) ?? [])].sort();
}

test("server/README.md names every metric that there is, and no other", async () => {
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
  // The names of tokens' claims, which are defaults of variables, begin like metrics.
  const others = new Set<unknown>(Object.values(VARIABLES).map(({ fallback }) => fallback));
  expect(metricNames(readme).filter((name) => !others.has(name))).toEqual(existing);
});
