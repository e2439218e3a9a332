import { createRandom } from "../../support/random.ts";

/** A fault of a run: when it begins, after the start, and the seed of its own choices. */
export interface ScheduledFault {
  readonly atMs: number;
  readonly fault: string;
  readonly seed: number;
}

/** Time for the load to reach its pace, and for the last fault to be seen healed. */
const LEAD_MS = 3000;
const TRAIL_MS = 8000;
/** Between the beginnings of two faults: most last a few seconds, so that some overlap and most don't. */
const MIN_GAP_MS = 2500;
const MAX_GAP_MS = 6500;

/**
 * Plans the faults of a run from the seed alone. Each kind comes once before any comes twice, so that a short
 * run has as many kinds as fit.
 */
export function planFaults(seed: number, durationMs: number, faults: readonly string[]): ScheduledFault[] {
  const random = createRandom(seed);
  const planned: ScheduledFault[] = [];
  let deck: string[] = [];
  let atMs = LEAD_MS;
  while (faults.length > 0 && atMs < durationMs - TRAIL_MS) {
    if (deck.length === 0) deck = random.shuffle(faults.toSorted());
    const fault = deck.pop();
    if (fault !== undefined) planned.push({ atMs, fault, seed: random.below(2 ** 32) });
    atMs += MIN_GAP_MS + random.below(MAX_GAP_MS - MIN_GAP_MS);
  }
  return planned;
}
