import type { Advice } from "@onceward/words/retention-advice";
import { DAY_MS } from "../../format/duration.ts";

/** How many duplicates a month come later than a time after the first claim of their key. */
export interface SurvivalPoint {
  readonly afterMs: number;
  readonly perMonth: number;
}

const DAYS_PER_MONTH = 30;
/** A bucket begins a fifth before its end. */
const BUCKET_BEGINS = 0.8;
/** The shortest lateness that the service tells apart. */
export const SHORTEST_MS = 1_000;

/**
 * Returns how many duplicates a month came later than each time, under all retentions that were in force. Each point holds until the
 * next one; what is left at the last one came later than the service tells apart.
 */
export function survivalOf({ lateness, observedSince }: Advice, now: Date): readonly SurvivalPoint[] {
  const days = (now.getTime() - (observedSince ?? now).getTime()) / DAY_MS;
  const months = Math.max(days, 1 / 24) / DAYS_PER_MONTH;
  let left = lateness.reduce((sum, { repeats }) => sum + repeats, 0);
  const points: SurvivalPoint[] = [{ afterMs: SHORTEST_MS, perMonth: left / months }];
  for (const { upToMs, repeats } of lateness.filter((bucket) => Number.isFinite(bucket.upToMs))) {
    const before = points.at(-1)?.afterMs ?? SHORTEST_MS;
    points.push({ afterMs: Math.max(before, upToMs * BUCKET_BEGINS), perMonth: left / months });
    left -= repeats;
    points.push({ afterMs: Math.max(upToMs, SHORTEST_MS), perMonth: left / months });
  }
  return points;
}
