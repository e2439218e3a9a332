import { setTimeout as delay } from "node:timers/promises";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { Runner } from "../database/pool.ts";
import {
  countRecordsPage,
  FROM_THE_START,
  storeCountedTotals,
  takeCount,
} from "../database/tenants/tenant-totals.ts";

/** Interval between two searches for a tenant whose count is due. */
const INTERVAL_MS = 1000;
/** Records per statement: a cold disk, too, reads them well within the statement's time limit. */
const PAGE_RECORDS = 5000;
/** A tenant is counted at most once in this time, and during at most a twentieth of the time. */
const MIN_PAUSE_MS = 15_000;
const PAUSE_PER_MS = 20;

/**
 * Counts the records of tenants with a storage quota, one tenant after another, which corrects changes that a
 * crashed replica did not store. All replicas count, but never the same tenant at once. A tenant's records
 * change during its count; the next count corrects records that were missed, or counted twice because a
 * replica stored its change afterwards.
 */
export function createRecordCounter(options: {
  readonly pool: Runner;
  readonly onFailed: (error: unknown) => void;
}): Repeating {
  const { pool, onFailed } = options;
  const stopping = new AbortController();

  async function countDue(): Promise<void> {
    while (!stopping.signal.aborted) {
      const tenantId = await takeCount(pool);
      if (tenantId === undefined) return;
      await countTenant(tenantId);
    }
  }

  /** Counts one tenant. A stopped count is lost; another replica counts the tenant from the start. */
  async function countTenant(tenantId: number): Promise<void> {
    let records = 0;
    let storedBytes = 0;
    let workedMs = 0;
    let after = FROM_THE_START;
    for (;;) {
      const startedAtMs = performance.now();
      const page = await countRecordsPage(pool, tenantId, after, PAGE_RECORDS);
      const tookMs = performance.now() - startedAtMs;
      workedMs += tookMs;
      records += page.records;
      storedBytes += page.storedBytes;
      if (page.upTo === undefined) break;
      after = page.upTo;
      // A pause as long as the page took, so that claims have priority.
      await delay(tookMs);
      if (stopping.signal.aborted) return;
    }
    const againInMs = Math.max(MIN_PAUSE_MS, PAUSE_PER_MS * workedMs);
    await storeCountedTotals(pool, { tenantId, records, storedBytes }, againInMs);
  }

  const repeating = createRepeating({ intervalMs: INTERVAL_MS, work: countDue, onFailed });
  return {
    start: repeating.start,
    async stop() {
      stopping.abort();
      await repeating.stop();
    },
  };
}
