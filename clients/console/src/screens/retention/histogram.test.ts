import { expect, it } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../format/duration.ts";
import { histogramOf } from "./histogram.ts";

it("the bars have all duplicates of the curve on both sides of the cut; the end is open", () => {
  const points = [
    { afterMs: 1_000, perMonth: 100 },
    { afterMs: MINUTE_MS, perMonth: 40 },
    { afterMs: DAY_MS, perMonth: 30 },
    { afterMs: 4 * DAY_MS, perMonth: 5 },
  ];
  const cutMs = 1.5 * DAY_MS;
  const bars = histogramOf(points, cutMs);
  expect(bars.reduce((sum, { perMonth }) => sum + perMonth, 0)).toBeCloseTo(100);
  expect(
    bars.filter(({ toMs }) => toMs <= MINUTE_MS).reduce((sum, { perMonth }) => sum + perMonth, 0),
  ).toBeCloseTo(60);
  expect(bars.at(-1)).toEqual({ fromMs: 4 * DAY_MS, toMs: Number.POSITIVE_INFINITY, perMonth: 5 });
  expect(bars.filter(({ fromMs, toMs }) => fromMs < cutMs && toMs > cutMs)).toEqual([]);
  expect(
    bars.filter(({ fromMs }) => fromMs >= DAY_MS).reduce((sum, { perMonth }) => sum + perMonth, 0),
  ).toBeCloseTo(30);
  expect(histogramOf([], DAY_MS)).toEqual([]);
});
