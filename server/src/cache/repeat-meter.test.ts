import { expect, test } from "vitest";
import { createRepeatMeter } from "./repeat-meter.ts";

/** Counts claims of which every so many-th is a repeat. */
function count(
  meter: ReturnType<typeof createRepeatMeter>,
  namespace: string,
  claims: number,
  every: number,
) {
  for (let claim = 1; claim <= claims; claim++) meter.count(namespace, claim % every === 0);
}

test("a namespace that was never claimed in doesn't repeat often", () => {
  expect(createRepeatMeter().repeatsOften("charges")).toBe(false);
});

test("a namespace of repeats does after a dozen of them, and no other does", () => {
  const meter = createRepeatMeter();
  count(meter, "charges", 12, 1);
  expect([meter.repeatsOften("charges"), meter.repeatsOften("emails")]).toEqual([true, false]);
});

test("one repeat in five is often, one in fifty isn't", () => {
  const meter = createRepeatMeter();
  count(meter, "often", 2000, 5);
  count(meter, "seldom", 2000, 50);
  expect([meter.repeatsOften("often"), meter.repeatsOften("seldom")]).toEqual([true, false]);
});

test("a namespace whose repeats end is soon one that doesn't repeat", () => {
  const meter = createRepeatMeter();
  count(meter, "charges", 1000, 1);
  count(meter, "charges", 300, Number.POSITIVE_INFINITY);
  expect(meter.repeatsOften("charges")).toBe(false);
});

test("what is counted all the time is remembered, however many namespaces come and go", () => {
  const meter = createRepeatMeter();
  count(meter, "old", 20, 1);
  for (let i = 0; i < 12_000; i++) {
    meter.count(`passing-${i}`, false);
    if (i % 100 === 0) meter.count("charges", true);
  }
  expect([meter.repeatsOften("charges"), meter.repeatsOften("old")]).toEqual([true, false]);
});
