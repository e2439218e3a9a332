import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../format/duration.ts";
import type { SurvivalPoint } from "./survival.ts";

/** How many duplicates a month come between two times after the first claim of their key. */
export interface Bar {
  readonly fromMs: number;
  /** Infinite: it is not known when they come after `fromMs`. */
  readonly toMs: number;
  readonly perMonth: number;
}

/** Times that people say; from an hour on, the retentions that are advised: what one catches is never a part of a bar. */
const EDGES_MS = [
  ...[1_000, 10_000, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS],
  ...[1, 2, 3, 7, 14, 30, 60, 90, 180, 400].map((days) => days * DAY_MS),
];

/** Returns the bars of a survival curve, with a limit at `cutMs`, so that no bar lies on both sides of a retention. */
export function histogramOf(points: readonly SurvivalPoint[], cutMs: number): readonly Bar[] {
  const { afterMs: lastMs, perMonth: beyond } = points.at(-1) ?? { afterMs: 0, perMonth: 0 };
  const edges = [...new Set([...EDGES_MS, cutMs])].filter((ms) => ms >= 1_000).toSorted((a, b) => a - b);
  const bars = edges
    .slice(0, -1)
    .map((fromMs, index) => {
      const toMs = edges[index + 1] ?? fromMs;
      return { fromMs, toMs, perMonth: laterThan(points, fromMs) - laterThan(points, toMs) };
    })
    .filter(({ fromMs, perMonth }) => fromMs < lastMs && perMonth > 0);
  const open = { fromMs: lastMs, toMs: Number.POSITIVE_INFINITY, perMonth: beyond };
  return beyond > 0 ? [...bars, open] : bars;
}

/** Between two points, nothing is known of when duplicates come: they are spread evenly over the logarithm of the time. */
function laterThan(points: readonly SurvivalPoint[], ms: number): number {
  const next = points.findIndex(({ afterMs }) => afterMs >= ms);
  if (next < 0) return points.at(-1)?.perMonth ?? 0;
  const [before, after] = [points[next - 1], points[next]];
  if (after === undefined || before === undefined) return after?.perMonth ?? 0;
  const share = Math.log(ms / before.afterMs) / Math.log(after.afterMs / before.afterMs);
  return before.perMonth + (after.perMonth - before.perMonth) * (Number.isFinite(share) ? share : 1);
}
