import type { Advice } from "@onceward/words/retention-advice";
import { expect, it } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../format/duration.ts";
import { survivalOf } from "./survival.ts";

const NOW = new Date("2026-11-23T00:00:00Z");

function adviceWith(observedSince: Date, lateness: Advice["lateness"]): Advice {
  const nothing = { target: 1, candidates: [], advised: undefined, verdict: "unproven" } as const;
  return { ...nothing, retentionMs: 6 * HOUR_MS, observedSince, lateness };
}

it("the survival curve falls by each bucket, also beyond the retention in force", () => {
  const lateness = [
    { upToMs: MINUTE_MS, repeats: 4 },
    { upToMs: 27 * HOUR_MS, repeats: 2 },
    { upToMs: Number.POSITIVE_INFINITY, repeats: 1 },
  ];
  expect(survivalOf(adviceWith(new Date("2026-11-08T00:00:00Z"), lateness), NOW)).toEqual([
    { afterMs: 1_000, perMonth: 14 },
    { afterMs: 0.8 * MINUTE_MS, perMonth: 14 },
    { afterMs: MINUTE_MS, perMonth: 6 },
    { afterMs: 0.8 * 27 * HOUR_MS, perMonth: 6 },
    { afterMs: 27 * HOUR_MS, perMonth: 2 },
  ]);
  // At least an hour is observed.
  expect(survivalOf(adviceWith(NOW, lateness), NOW)[0]?.perMonth).toBeCloseTo(7 * 720);
});
