import { expect, test } from "vitest";
import { createRepeatMeter } from "./replay-cache.ts";

/** Counts claims; every n-th of them is a repeat. */
function count(
  meter: ReturnType<typeof createRepeatMeter>,
  namespace: string,
  claims: number,
  every: number,
) {
  for (let claim = 1; claim <= claims; claim++) meter.count(namespace, claim % every === 0);
}

test("a namespace without claims has no frequent repeats", () => {
  expect(createRepeatMeter().repeatsOften("charges")).toBe(false);
});

test("a namespace has frequent repeats after a dozen of them; others do not", () => {
  const meter = createRepeatMeter();
  count(meter, "charges", 12, 1);
  expect([meter.repeatsOften("charges"), meter.repeatsOften("emails")]).toEqual([true, false]);
});

test("one repeat in five is frequent, one in fifty is not", () => {
  const meter = createRepeatMeter();
  count(meter, "often", 2000, 5);
  count(meter, "seldom", 2000, 50);
  expect([meter.repeatsOften("often"), meter.repeatsOften("seldom")]).toEqual([true, false]);
});

test("repeats soon stop being frequent after they end", () => {
  const meter = createRepeatMeter();
  count(meter, "charges", 1000, 1);
  count(meter, "charges", 300, Number.POSITIVE_INFINITY);
  expect(meter.repeatsOften("charges")).toBe(false);
});

test("a namespace that is counted regularly is not evicted by others", () => {
  const meter = createRepeatMeter();
  count(meter, "old", 20, 1);
  for (let i = 0; i < 12_000; i++) {
    meter.count(`passing-${i}`, false);
    if (i % 100 === 0) meter.count("charges", true);
  }
  expect([meter.repeatsOften("charges"), meter.repeatsOften("old")]).toEqual([true, false]);
});
