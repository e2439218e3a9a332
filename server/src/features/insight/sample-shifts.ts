import type { Runner } from "../../core/store/pool.ts";
import type { UsedNamespace } from "../../records/after-operation.ts";
import { BATCH_ROWS } from "./deferred-queue.ts";
import { type LimitSample, type NamespaceSample, nameOf } from "./store/sample-limits.ts";
import { listChangedSamples } from "./store/tombstones.ts";

/** Some 10 MiB. Late repeats of further namespaces are not seen on this replica. */
const MAX_NAMESPACES = 100_000;
/** Samples per statement: some milliseconds. */
const PAGE = 1000;
/** A statement that is this old has ended: what it changed is visible. */
const OVERLAP_MS = 15_000;

/**
 * Holds the samples of namespaces as this replica knows them: at most as old as the last refresh.
 *
 * @param maxHeld rows of each sample.
 */
export function createSampleShifts(pool: Runner, limit: LimitSample, maxHeld: number) {
  const shifts = new Map<string, number>();
  let newestMs = 0;

  function set(sample: NamespaceSample): void {
    const name = nameOf(sample);
    if (shifts.has(name) || shifts.size < MAX_NAMESPACES) shifts.set(name, sample.shift);
  }

  return {
    /** Returns a namespace's shift; undefined if no tombstone of it is known. */
    of: (namespace: UsedNamespace): number | undefined => shifts.get(nameOf(namespace)),
    /**
     * Stores what waits, in batches, and keeps each sample within its maximum. A failed batch waits again.
     *
     * @param add stores a batch, and returns the samples that it belongs to.
     */
    async store<Item>(
      waiting: { take(max: number): readonly Item[]; putBack(batch: readonly Item[]): void },
      add: (batch: readonly Item[]) => Promise<readonly NamespaceSample[]>,
    ): Promise<void> {
      const full = new Map<string, NamespaceSample>();
      for (let batch = waiting.take(BATCH_ROWS); batch.length > 0; batch = waiting.take(BATCH_ROWS)) {
        const samples = await add(batch).catch((error: unknown) => {
          waiting.putBack(batch);
          throw error;
        });
        for (const sample of samples) {
          set(sample);
          if (sample.held > maxHeld) full.set(nameOf(sample), sample);
        }
      }
      for (const sample of full.values()) {
        const limited = await limit(pool, sample, maxHeld);
        if (limited !== undefined) set(limited);
      }
    },
    /** Reads the samples that other replicas have changed since the last time. */
    async refresh(): Promise<void> {
      let after = { changedAtMs: newestMs - OVERLAP_MS, tenantId: 0, namespace: "" };
      for (let isLast = false; !isLast; ) {
        const page = await listChangedSamples(pool, after, PAGE);
        for (const sample of page) set(sample);
        after = page.at(-1) ?? after;
        isLast = page.length < PAGE;
      }
      newestMs = Math.max(newestMs, after.changedAtMs);
    },
  };
}
