import { expect, test } from "vitest";
import { WORKER_SETTINGS } from "../../core/store/pool.ts";
import { judgeNodeClocks, judgeWorkers } from "./doctor-check.ts";

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

test("a worker is found that has off what the guarantees rest on", () => {
  const own = Object.entries(WORKER_SETTINGS).map(([name, value]) => [name, String(value)] as const);
  const worker = (settings: Readonly<Record<string, string>>) => ({
    node: "worker-1:5432",
    success: true,
    result: JSON.stringify({ ...Object.fromEntries(own), ...settings }),
  });
  expect(judgeWorkers([worker({ fsync: "on", autovacuum: "on" })])).toEqual([]);
  expect(judgeWorkers([worker({ fsync: "off", autovacuum: "off" })])).toEqual([
    { id: "fsync_off", summary: "Worker worker-1:5432: fsync is off." },
    { id: "autovacuum_off", summary: "Worker worker-1:5432: autovacuum is off." },
  ]);
});
