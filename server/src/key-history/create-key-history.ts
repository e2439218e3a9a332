import { tenantAdminRoutes } from "../admin/services.ts";
import { createRepeating } from "../background/repeat.ts";
import type { CoreParts } from "../core-parts.ts";
import { createDeclinedKeys } from "./declined-keys.ts";
import { getKeyHistory } from "./get-key-history.ts";
import { createKeySlots, storeKeyHistories, withSlots } from "./key-histories.ts";

/** Keys that a replica stores in one flush: 13 rows a second at most, which claims do not feel. */
const MAX_STORED = 64;

/** Keeps who repeated a key, and what was refused of it. */
export function createKeyHistory(core: CoreParts) {
  const { config, onFailed } = core;
  const keys = createDeclinedKeys();
  const slotOf = createKeySlots(config.ONCEWARD_API_KEY_PEPPER);

  /** A flush whose reply was lost may have been stored: it is not repeated, so that nothing is counted twice. */
  async function flush(): Promise<void> {
    const taken = withSlots(keys.take(MAX_STORED), slotOf);
    if (taken.length > 0) await storeKeyHistories(core.tasks.pool, taken);
  }

  return {
    hooks: { declined: keys.declined },
    flusher: createRepeating({
      intervalMs: config.ONCEWARD_USAGE_FLUSH,
      work: flush,
      turnsAtStop: 1,
      onFailed: onFailed("store_key_histories"),
    }),
    routes: tenantAdminRoutes(core, { getKeyHistory }),
  };
}
