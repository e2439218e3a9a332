import { expect, test } from "vitest";
import type { Charge } from "../../support/providers/provider.ts";
import { brokenPromises, isChargedTwice, isSettled, type Story, settledAfterMs } from "./judge.ts";

const TIMES = { leaseMs: 1000, lagMs: 60_000 };
const charge: Charge = {
  ...{ operation: "k", key: "d", attempt: 1, fencingToken: 7 },
  ...{ id: 1, status: "succeeded", atMs: 5000 },
};
const again = { ...charge, attempt: 2, fencingToken: 8, id: 2, atMs: 6000 };
const STORY: Story = {
  kind: "search",
  key: "k",
  begunAtMs: 5000,
  interruptedAtMs: [5100],
  ...{ isAmbiguous: true, mayHaveBegun: true, mayBeLate: false },
  values: [1, 1],
  settledAtMs: 66_000,
  charges: [charge],
};
const REPEATED: Story = {
  ...STORY,
  kind: "reclaim",
  isAmbiguous: false,
  values: [2],
  charges: [charge, again],
};

test("an operation that is settled by a search breaks nothing, nor does one that RECLAIM repeats", () => {
  expect(brokenPromises(STORY, TIMES)).toEqual([]);
  expect(isSettled(STORY, TIMES)).toBe(true);
  expect(settledAfterMs(STORY, TIMES)).toBe(900);
  expect(brokenPromises(REPEATED, TIMES)).toEqual([]);
  expect(isChargedTwice(REPEATED)).toBe(false);
  const late = { ...charge, atMs: 7000 };
  expect(brokenPromises({ ...REPEATED, mayBeLate: true, charges: [again, late] }, TIMES)).toEqual([]);
});

test.each<[string, Story]>([
  ["charged once", { ...STORY, values: [2], charges: [charge, again] }],
  ["charged once", { ...STORY, kind: "no-key", values: [], charges: [charge, again] }],
  ["each answer is the provider's", { ...STORY, values: [1, 2] }],
  ["each answer is the provider's", { ...STORY, charges: [] }],
  ["it is settled", { ...STORY, isAmbiguous: false, values: [] }],
  ["before the effect is not ambiguous", { ...STORY, mayHaveBegun: false }],
  ["at most once", { ...REPEATED, interruptedAtMs: [] }],
  ["one derived key", { ...REPEATED, charges: [charge, { ...again, key: "e" }] }],
  ["before the first lease has expired", { ...REPEATED, charges: [charge, { ...again, atMs: 5999 }] }],
  ["tokens increase", { ...REPEATED, charges: [charge, { ...again, fencingToken: 7 }] }],
  ["tokens increase", { ...REPEATED, charges: [again, charge] }],
])("a story breaks: %s", (promise, story) => {
  expect(brokenPromises(story, TIMES).join("; ")).toContain(promise);
  expect(isChargedTwice(story)).toBe(promise === "charged once");
});

test.each([undefined, 5100 + 60_000 + 60_001])("settled at %s is not in time", (settledAtMs) => {
  expect(isSettled({ ...STORY, settledAtMs }, TIMES)).toBe(false);
});
