import type { Feature } from "../../core/feature.ts";
import { administrationParts, tenantAdminRoutes } from "../administration/services.ts";
import { createKeyHashes } from "./domain/key-hashes.ts";
import { createFirstClaimsBuffer } from "./first-claims.ts";
import { createKeyObserver } from "./key-observer.ts";
import { createKeySampler } from "./key-sampler.ts";
import { createKeyQualityHandlers } from "./rpc/key-quality.ts";
import { createRetentionAdviceHandlers } from "./rpc/retention-advice.ts";
import { removeSamples } from "./store/tombstones.ts";

/** Observes late duplicates and how keys are made, and advises. */
export const insight: Feature = {
  compose(core) {
    const { config, metrics, onFailed } = core;
    const shared = { pool: core.tasks.pool, intervalMs: config.ONCEWARD_USAGE_FLUSH };
    const firstClaims = createFirstClaimsBuffer({
      isSampled: (of) => sampler.isSampled(of),
      onFull: () => sampler.selectClaims(),
      fingerprintShiftOf: (of) => observer.fingerprintShiftOf(of),
      onObservedFull: () => observer.takeClaims(),
    });
    const sampler = createKeySampler({
      ...shared,
      takeFirstClaims: firstClaims.takeFirstClaims,
      pepper: config.ONCEWARD_API_KEY_PEPPER,
      onFailed: onFailed("sample_keys"),
      onDropped: () => metrics.backgroundErrors.inc({ task: "sample_keys" }),
    });
    const observer = createKeyObserver({
      ...shared,
      takeObserved: firstClaims.takeObserved,
      beginInterval: firstClaims.beginInterval,
      hashes: createKeyHashes(config.ONCEWARD_API_KEY_PEPPER),
      onFailed: onFailed("observe_keys"),
      onDropped: () => metrics.backgroundErrors.inc({ task: "observe_keys" }),
    });
    const parts = administrationParts(core);
    return {
      hooks: { claimed: firstClaims.claimed },
      onSwept(byNamespace) {
        sampler.swept(byNamespace);
        observer.swept(byNamespace);
      },
      sampleSeed: sampler.seed,
      forgetKeys: removeSamples,
      flushes: [sampler, observer],
      routes: tenantAdminRoutes(core.admission, {
        ...createRetentionAdviceHandlers(parts),
        ...createKeyQualityHandlers(parts),
      }),
    };
  },
};
