import { setTimeout as delay } from "node:timers/promises";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { Runner } from "../store/pool.ts";
import {
  countRecordsPage,
  FROM_THE_START,
  storeCountedTotals,
  takeCount,
} from "../store/tenants/tenant-totals.ts";

export interface RecordCounterOptions {
  readonly pool: Runner;
  readonly onFailed: (error: unknown) => void;
}

/** Between two looks for a tenant that is due. */
const INTERVAL_MS = 1000;
/** Records per statement: even from a cold disk they are read well within the statement's time limit. */
const PAGE_RECORDS = 5000;
/** A tenant is counted at most this often, and for at most a twentieth of the time. */
const MIN_PAUSE_MS = 15_000;
const PAUSE_PER_MS = 20;

/**
 * Counts what tenants store that have a quota of it, one after another, so that nothing that a replica took with it when
 * it died stays wrong. Every replica does, and a tenant is one replica's at a time. While a tenant is being counted its
 * records change: what is so missed, or counted though a replica is about to add it, is right again with the next count.
 */
export function createRecordCounter({ pool, onFailed }: RecordCounterOptions): Repeating {
  const stopping = new AbortController();

  async function countDue(): Promise<void> {
    while (!stopping.signal.aborted) {
      const tenantId = await takeCount(pool);
      if (tenantId === undefined) return;
      await countTenant(tenantId);
    }
  }

  /** A count that is stopped is begun anew, by whoever comes next. */
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
      // As long as the page took: claims go first.
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
