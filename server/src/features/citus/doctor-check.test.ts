import { expect, test } from "vitest";
import { judgeNodeClocks } from "./doctor-check.ts";

const clock = (databaseMs: number, endedAtMs = 1_000_100) => [
  { node: "worker-1:5432", reading: { startedAtMs: 1_000_000, endedAtMs, databaseMs } },
];

test.each([
  [1_000_050 + 2100, "The clock of worker worker-1:5432 is 2.1 s ahead of the coordinator's."],
  [1_000_050 - 2100, "The clock of worker worker-1:5432 is 2.1 s behind the coordinator's."],
])("a worker whose clock is more than two seconds off is found", (databaseMs, summary) => {
  expect(judgeNodeClocks(clock(databaseMs))).toEqual([{ id: "citus_clock_skewed", summary }]);
});

test("a worker that is in time, or may be as far as the measurement tells, is not found", () => {
  expect(judgeNodeClocks(clock(1_000_050))).toEqual([]);
  expect(judgeNodeClocks(clock(1_000_050 + 2100, 1_000_500))).toEqual([]);
});
