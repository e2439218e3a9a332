import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { UsageHourSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import type { Advice, Evidence } from "@onceward/words/retention-advice";
import { describe, expect, it } from "vitest";
import { daysCovered, survivalOf } from "./survival.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

function hour(buckets: readonly (readonly [upToMs: number | undefined, repeats: number])[]) {
  return create(UsageHourSchema, {
    repeatLateness: buckets.map(([upToMs, repeats]) => ({
      ...(upToMs === undefined ? {} : { upTo: durationFromMs(upToMs) }),
      repeats: BigInt(repeats),
    })),
  });
}

function adviceWith(evidence: Evidence): Advice {
  return {
    retentionMs: 6 * HOUR_MS,
    observedSince: undefined,
    target: 1,
    candidates: [{ retentionMs: 6 * HOUR_MS, evidence, records: 0, bytes: 0 }],
    recommendation: { kind: "none" },
  };
}

const counts = { low: 0, high: 60, daysWithLate: 1, daysObserved: 28, claims: 1, maxPerMillion: 1 };
const SIXTY_LATE: Evidence = { kind: "late", perMonth: 60, ...counts };

describe("the survival curve", () => {
  it("falls by the duplicates of each bucket of all hours, to those later than the retention", () => {
    const hours = [
      hour([
        [MINUTE_MS, 3],
        [undefined, 0],
      ]),
      hour([
        [HOUR_MS, 2],
        [MINUTE_MS, 1],
      ]),
    ];
    expect(survivalOf(hours, 15, adviceWith(SIXTY_LATE))).toEqual([
      { afterMs: 1_000, perMonth: 72 },
      { afterMs: MINUTE_MS, perMonth: 64 },
      { afterMs: HOUR_MS, perMonth: 60 },
      { afterMs: 6 * HOUR_MS, perMonth: 60 },
    ]);
  });

  it("skips recognised duplicates that are later than the retention: the estimate has them", () => {
    const points = survivalOf([hour([[27 * HOUR_MS, 5]])], 30, adviceWith(SIXTY_LATE));
    expect(points[0]).toEqual({ afterMs: 1_000, perMonth: 60 });
  });

  it("ends at 0 where nothing is known beyond the retention", () => {
    const points = survivalOf([], 30, adviceWith({ kind: "missing", days: 6, claims: 0n }));
    expect(points.at(-1)?.perMonth).toBe(0);
  });
});

it("the days covered begin when the namespace was first observed", () => {
  const now = new Date("2026-11-23T00:00:00Z");
  const monthAgo = new Date("2026-10-24T00:00:00Z");
  expect(daysCovered(monthAgo, undefined, now)).toBe(30);
  expect(daysCovered(monthAgo, new Date("2026-11-13T00:00:00Z"), now)).toBe(10);
  expect(daysCovered(monthAgo, now, now)).toBeCloseTo(1 / 24);
});
