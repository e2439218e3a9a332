import { expect, test } from "vitest";
import { createRandom } from "../../helpers/random.ts";
import { makePlan } from "./operations.ts";
import { faults, lateFaults, summary } from "./report.ts";
import type { Outcome } from "./run.ts";

test("a seed determines the operations, their order and the crashes", () => {
  expect(makePlan(createRandom(7), 24)).toEqual(makePlan(createRandom(7), 24));
  expect(makePlan(createRandom(7), 24)).not.toEqual(makePlan(createRandom(8), 24));
});

test("every example payload is an operation with a unique key, delivered three times", () => {
  const { operations, deliveries, crashes } = makePlan(createRandom(7), 24);
  expect(operations.length).toBeGreaterThan(300);
  expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
  const counts = Map.groupBy(deliveries, ({ operation }) => operation.id);
  expect([...counts.values()].every((group) => group.length === 3)).toBe(true);
  expect(counts.size).toBe(operations.length);
  expect(new Set([...crashes.values()].map(({ point }) => point)).size).toBe(3);
});

const good: Outcome = {
  unique: 10,
  deliveries: 30,
  effects: 10,
  missing: 0,
  suppressed: 20,
  disagreeing: 0,
  providerCalls: 12,
  absorbed: 2,
  crashes: 3,
  inProgress: 4,
  ambiguous: 0,
  failures: [],
  durationMs: 1000,
};

test("a run that keeps its promises has no faults, and its last line has the four counts", () => {
  expect(faults(good)).toEqual([]);
  expect(summary(good)).toBe("unique=10 deliveries=30 effects=10 suppressed=20");
});

test.each([
  ["an effect too many", { effects: 11 }, "11 effects for 10 operations"],
  ["one effect twice and one missing", { effects: 10, missing: 1 }, "1 operations without an effect"],
  [
    "a delivery that is neither first nor suppressed",
    { suppressed: 19 },
    "10 unique + 19 suppressed are not 30 deliveries",
  ],
  [
    "two answers for one operation",
    { disagreeing: 1 },
    "1 operations whose deliveries got different answers",
  ],
  ["no crash", { crashes: 0 }, "no worker crashed, so the run shows nothing"],
])("%s is a fault", (_, changed, fault) => {
  expect(faults({ ...good, ...changed })).toEqual([fault]);
});

const late = { redelivered: 10, effects: 0, refused: 10 };
const ran = { redelivered: 10, effects: 10, refused: 0 };

test("late deliveries that are refused, and run without the policy, are not faults", () => {
  expect(lateFaults({ run: ran, refuse: late })).toEqual([]);
});

test.each([
  ["an effect", { run: ran, refuse: { ...late, effects: 1 } }, "1 late deliveries had an effect"],
  [
    "a delivery that is not refused",
    { run: ran, refuse: { ...late, refused: 9 } },
    "9 of 10 late deliveries were refused",
  ],
  [
    "no effect without the policy",
    { run: { ...ran, effects: 0 }, refuse: late },
    "no late delivery had an effect without the policy, so the run shows nothing",
  ],
])("of late deliveries, %s is a fault", (_, outcomes, fault) => {
  expect(lateFaults(outcomes)).toEqual([fault]);
});
