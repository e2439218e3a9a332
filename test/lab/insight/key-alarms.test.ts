import { expect, test } from "vitest";
import { measureAlarms } from "./key-alarms.ts";
import { DEFECTS, HONEST } from "./key-traffic.ts";

/** 33 months of right keys in all: without an alarm, fewer than one month in 11 has one (95 %). */
const MONTHS = 3;
const SEED = 7;
/** A UUID or a time that is made for each claim is known once 300 first claims have no repeat of enough claims. */
const MAX_DAYS = 15;
/** Retries of the other callers hide those of the fifth: README.md. */
const HIDDEN = ["the same, one caller in 5, the others with 1 % retries"];

test("no report of right keys suspects anything", () => {
  const alarms = Object.entries(HONEST).flatMap(([name, traffic]) =>
    [...measureAlarms(traffic, MONTHS, SEED).suspected].map(([kind, months]) => [name, kind, months]),
  );
  expect(Object.keys(HONEST).length * MONTHS).toBeGreaterThanOrEqual(33);
  expect(alarms).toEqual([]);
});

test("every defect is suspected within half a month, but one that others' retries hide", () => {
  const missed = Object.entries(DEFECTS).filter(
    ([, traffic]) =>
      (measureAlarms(traffic, 1, SEED).daysUntil.get(traffic.kind) ?? Number.POSITIVE_INFINITY) > MAX_DAYS,
  );
  expect(missed.map(([name]) => name)).toEqual(HIDDEN);
});
