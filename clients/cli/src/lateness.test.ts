import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { UsageHourSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { HOUR_MS } from "#words/durations";
import { describeLateness, sumLateness } from "./lateness.ts";

function usage(namespace: string, minute: number, day: number, later: number) {
  return create(UsageHourSchema, {
    namespace,
    repeatLateness: [
      { upTo: durationFromMs(60_000), repeats: BigInt(minute) },
      { upTo: durationFromMs(24 * HOUR_MS), repeats: BigInt(day) },
      { repeats: BigInt(later) },
    ],
  });
}

function chartOf(...hours: ReturnType<typeof usage>[]): string {
  return [...sumLateness(hours)].map(([name, buckets]) => describeLateness(name, buckets)).join("");
}

test("hours are summed by namespace, and the chart names no retention", () => {
  expect(chartOf(usage("charges", 900, 2, 0), usage("mail", 0, 0, 0), usage("charges", 90, 8, 0))).toBe(`
How late duplicates came in charges, since their key was first claimed:
  ≤ 1m   990  ██████████████████████████████
  ≤ 24h   10  █
Those that came after the end of their record are missing: see onceward advice charges
`);
});

test("without duplicates there is no chart", () => {
  expect(chartOf(usage("charges", 0, 0, 0))).toBe("");
});
