import type { CoreParts } from "../../core-parts.ts";
import type { SweptNamespace } from "../../records/sweep.ts";
import { createRecentRefusals } from "./recent-refusals.ts";
import { createRecentUse } from "./recent-use.ts";
import { createUsageFlusher } from "./usage-flusher.ts";
import { createUsageMeter } from "./usage-meter.ts";

/** Counts what callers did, by hour and namespace, and in the last minute. */
export function createUsage(core: CoreParts) {
  const { config, databaseClock, metrics, onFailed, replica } = core;
  const meter = createUsageMeter(() => metrics.backgroundErrors.inc({ task: "count_usage" }));
  const refusals = createRecentRefusals();
  const flusher = createUsageFlusher({
    pool: core.tasks.pool,
    meter,
    recent: createRecentUse(Date.now()),
    refusals,
    replica,
    databaseClock,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("store_usage"),
  });
  return {
    hooks: { ...meter, declined: refusals.declined },
    onSwept(byNamespace: readonly SweptNamespace[]) {
      for (const { tenantId, namespace, deleted } of byNamespace)
        if (deleted > 0) meter.count({ tenantId, namespace }, "swept", deleted);
    },
    flusher,
  };
}

export type Usage = ReturnType<typeof createUsage>;
