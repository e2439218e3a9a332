import { expect, test } from "vitest";
import { planFaults } from "./schedule.ts";

const FAULTS = ["redis-kill", "replica-kill", "postgres-kill"];

test("a seed determines the schedule, in whichever order the faults are named", () => {
  const plan = planFaults(42, 600_000, FAULTS);
  expect(planFaults(42, 600_000, FAULTS.toReversed())).toEqual(plan);
  expect(planFaults(43, 600_000, FAULTS)).not.toEqual(plan);
});

test("a longer run begins as a shorter one does", () => {
  const short = planFaults(7, 60_000, FAULTS);
  expect(planFaults(7, 120_000, FAULTS).slice(0, short.length)).toEqual(short);
});

test("every kind comes before any comes twice", () => {
  const plan = planFaults(1, 600_000, FAULTS);
  for (let round = 0; round + 3 <= plan.length; round += 3) {
    const names = plan.slice(round, round + 3).map(({ fault }) => fault);
    expect(names.toSorted()).toEqual(FAULTS.toSorted());
  }
});

test("no fault begins in the last seconds of a run", () => {
  const plan = planFaults(5, 60_000, FAULTS);
  expect(plan.length).toBeGreaterThan(5);
  expect(plan.every(({ atMs }) => atMs >= 3000 && atMs < 52_000)).toBe(true);
  expect(planFaults(5, 60_000, [])).toEqual([]);
});
