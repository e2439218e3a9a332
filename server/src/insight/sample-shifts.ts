import type { Runner } from "../database/pool.ts";
import { BATCH_ROWS } from "./deferred-queue.ts";
import {
  limitSample,
  listChangedSamples,
  nameOf,
  type Sample,
  type SampleId,
  type SampleKind,
} from "./samples.ts";
import type { createWaitingSamples, WaitingSample } from "./waiting-samples.ts";

/** Some 20 MiB. Late repeats of further namespaces are not seen on this replica. */
const MAX_SAMPLES = 200_000;
/** Samples per statement: some milliseconds. */
const PAGE = 1000;
/** A statement that is this old has ended: what it changed is visible. */
const OVERLAP_MS = 15_000;

/**
 * Holds the samples of namespaces as this replica knows them: at most as old as the last refresh.
 *
 * @param maxHeld keys of each sample, by kind.
 */
export function createSampleShifts(pool: Runner, maxHeld: Readonly<Record<SampleKind, number>>) {
  const shifts = new Map<string, number>();
  let newestMs = 0;

  function set(sample: Sample): void {
    const name = nameOf(sample);
    if (shifts.has(name) || shifts.size < MAX_SAMPLES) shifts.set(name, sample.shift);
  }

  return {
    /** Returns a sample's shift; undefined if no key of it is known. */
    of: (id: SampleId): number | undefined => shifts.get(nameOf(id)),
    /**
     * Stores what waits, in batches, and keeps each sample within its maximum. A failed batch waits again.
     *
     * @param add stores a batch, and returns the samples that it belongs to.
     */
    async store(
      waiting: Pick<ReturnType<typeof createWaitingSamples>, "take" | "putBack">,
      add: (batch: readonly WaitingSample[]) => Promise<readonly Sample[]>,
    ): Promise<void> {
      const full = new Map<string, Sample>();
      for (let batch = waiting.take(BATCH_ROWS); batch.length > 0; batch = waiting.take(BATCH_ROWS)) {
        const samples = await add(batch).catch((error: unknown) => {
          waiting.putBack(batch);
          throw error;
        });
        for (const sample of samples) {
          set(sample);
          if (sample.held > maxHeld[sample.kind]) full.set(nameOf(sample), sample);
        }
      }
      for (const sample of full.values()) {
        const limited = await limitSample(pool, sample, maxHeld[sample.kind]);
        if (limited !== undefined) set(limited);
      }
    },
    /** Reads the samples that other replicas have changed since the last time. */
    async refresh(): Promise<void> {
      let after: Parameters<typeof listChangedSamples>[1] = {
        ...{ changedAtMs: newestMs - OVERLAP_MS, tenantId: 0, namespace: "", kind: "" },
      };
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
