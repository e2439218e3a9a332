import { expect, test } from "vitest";
import { WORKER_SETTINGS } from "../../database/pool.ts";
import { judgeNodeClocks, judgeWorkerStandbys, judgeWorkers } from "./citus.ts";

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

function worker(settings: Readonly<Record<string, string>>, standbys: readonly (string | null)[] = []) {
  const own = Object.fromEntries(
    Object.entries(WORKER_SETTINGS).map(([name, value]) => [name, String(value)]),
  );
  const result = JSON.stringify({ settings: { ...own, ...settings }, standbys });
  return { node: "worker-1:5432", success: true, result };
}

test("a worker is found that has off what the guarantees rest on", () => {
  expect(judgeWorkers([worker({ fsync: "on", autovacuum: "on" })])).toEqual([]);
  expect(judgeWorkers([worker({ fsync: "off", autovacuum: "off" })])).toEqual([
    { id: "fsync_off", summary: "Worker worker-1:5432: fsync is off." },
    { id: "autovacuum_off", summary: "Worker worker-1:5432: autovacuum is off." },
  ]);
});

test.each([
  ["without a standby", "", "on", [], "standby_missing"],
  ["whose standby is asynchronous", "", "on", ["async"], "standby_asynchronous"],
  ["whose commits do not wait for its standby", "*", "local", ["sync"], "standby_asynchronous"],
  ["whose synchronous standby is away", "gone", "on", ["async"], "synchronous_standby_missing"],
])("a worker is found %s", (_what, synchronous_standby_names, synchronous_commit, standbys, id) => {
  const found = judgeWorkerStandbys([worker({ synchronous_standby_names, synchronous_commit }, standbys)]);
  expect(found).toEqual([{ id, summary: expect.stringMatching(/^Worker worker-1:5432: /) }]);
});

test("a worker with a synchronous standby is in order, also if the role may not see its state", () => {
  const settings = { synchronous_standby_names: "*", synchronous_commit: "on" };
  expect(judgeWorkerStandbys([worker(settings, ["sync"]), worker(settings, [null])])).toEqual([]);
});
