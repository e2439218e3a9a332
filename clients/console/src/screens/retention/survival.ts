import { durationMs } from "@bufbuild/protobuf/wkt";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import type { Advice } from "@onceward/words/retention-advice";

/** How many duplicates a month come later than a time after the first claim of their key. */
export interface SurvivalPoint {
  readonly afterMs: number;
  readonly perMonth: number;
}

const DAY_MS = 86_400_000;
const DAYS_PER_MONTH = 30;
/** The shortest lateness that the service tells apart. */
export const SHORTEST_MS = 1_000;

/**
 * Returns how many duplicates a month came later than each time up to the retention in force: the recognised duplicates of
 * `hours`, which cover `days` days, and those later than the retention, which the advice estimates. Each point holds until the
 * next one. Recognised duplicates later than the retention, from when it was longer, are part of the estimate.
 */
export function survivalOf(
  hours: readonly UsageHour[],
  days: number,
  { retentionMs, candidates }: Advice,
): readonly SurvivalPoint[] {
  const current = candidates.find((candidate) => candidate.retentionMs === retentionMs)?.evidence;
  const beyond = current?.kind === "late" ? current.perMonth : 0;
  const counts = new Map<number, number>();
  for (const { upTo, repeats } of hours.flatMap(({ repeatLateness }) => repeatLateness)) {
    const upToMs = upTo === undefined ? Number.POSITIVE_INFINITY : durationMs(upTo);
    if (upToMs <= retentionMs) counts.set(upToMs, (counts.get(upToMs) ?? 0) + Number(repeats));
  }
  const buckets = [...counts].sort(([a], [b]) => a - b);
  let left = buckets.reduce((sum, [, repeats]) => sum + repeats, 0);
  const perMonth = () => (left * DAYS_PER_MONTH) / days + beyond;
  const points: SurvivalPoint[] = [{ afterMs: SHORTEST_MS, perMonth: perMonth() }];
  for (const [afterMs, repeats] of buckets) {
    left -= repeats;
    points.push({ afterMs: Math.max(afterMs, SHORTEST_MS), perMonth: perMonth() });
  }
  return [...points, { afterMs: retentionMs, perMonth: perMonth() }];
}

/** Returns the days that hours since `after` cover, of a namespace that is observed since then or later; at least one hour. */
export function daysCovered(after: Date, observedSince: Date | undefined, now: Date): number {
  const since = Math.max(after.getTime(), observedSince?.getTime() ?? 0);
  return Math.max(1 / 24, (now.getTime() - since) / DAY_MS);
}
