import { tenantAdminRoutes } from "../admin/services.ts";
import type { CoreParts } from "../core-parts.ts";
import { createFirstClaims } from "./first-claims.ts";
import { getKeyQuality } from "./get-key-quality.ts";
import { getRetentionAdvice, listRetentionAdvice } from "./retention-advice.ts";
import { createSampler } from "./sampler.ts";

/** Observes late duplicates and how keys are made, and advises. */
export function createInsight(core: CoreParts) {
  const { config, metrics, onFailed } = core;
  const firstClaims = createFirstClaims({
    samplingOf: (of) => sampler.samplingOf(of),
    onFull: () => sampler.takeClaims(),
  });
  const sampler = createSampler({
    pool: core.tasks.pool,
    firstClaims,
    pepper: config.ONCEWARD_API_KEY_PEPPER,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("sample_keys"),
    onDropped: (count) => metrics.backgroundErrors.inc({ task: "sample_keys" }, count),
  });
  return {
    hooks: { claimed: firstClaims.claimed },
    sampler,
    routes: tenantAdminRoutes(core, { getKeyQuality, getRetentionAdvice, listRetentionAdvice }),
  };
}

export type Insight = ReturnType<typeof createInsight>;
