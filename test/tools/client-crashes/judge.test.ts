import { expect, test } from "vitest";
import { brokenPromises, phaseOf, type Story } from "./judge.ts";

const effect = { key: "k", derivedKey: "d", attempt: 1, fencingToken: 7, number: 1, atMs: 5000 };
const again = { ...effect, attempt: 2, fencingToken: 8, number: 2, atMs: 6000 };
const replay = { value: 1, replayed: true };
const REPEATED: Story = {
  policy: "RECLAIM",
  ending: "kill",
  begunAtMs: 5000,
  leaseMs: 1000,
  first: undefined,
  effectsOfFirst: 1,
  second: { value: 2, replayed: false },
  effectsBeforeAccepting: 2,
  accepting: undefined,
  last: { value: 2, replayed: true },
  effects: [effect, again],
};
const STORED: Story = {
  ...REPEATED,
  second: replay,
  effectsBeforeAccepting: 1,
  last: replay,
  effects: [effect],
};

test("an effect that is repeated once under RECLAIM, and one that is not, break nothing", () => {
  expect(brokenPromises(REPEATED)).toEqual([]);
  expect(brokenPromises(STORED)).toEqual([]);
  expect([phaseOf(REPEATED), phaseOf(STORED), phaseOf({ ...REPEATED, effectsOfFirst: 0 })]).toEqual([
    "between the effect and its completion",
    "after the completion",
    "before the effect",
  ]);
});

test.each<[string, Story]>([
  ["under HOLD nothing runs again", { ...REPEATED, policy: "HOLD" }],
  [
    "an operation that was completed does not run again",
    { ...REPEATED, first: { value: 1, replayed: false } },
  ],
  ["at most once", { ...REPEATED, effects: [effect, again, again] }],
  ["the effect happens", { ...STORED, effects: [] }],
  ["one derived key", { ...REPEATED, effects: [effect, { ...again, derivedKey: "e" }] }],
  ["tokens increase", { ...REPEATED, effects: [effect, { ...again, fencingToken: 7 }] }],
  ["before the first lease has expired", { ...REPEATED, effects: [effect, { ...again, atMs: 5999 }] }],
  ["the same value", { ...REPEATED, last: { value: 3, replayed: true } }],
  ["runs or gets the value", { ...REPEATED, second: { value: 0, replayed: false, reason: "AMBIGUOUS" } }],
])("a story breaks: %s", (promise, story) => {
  expect(brokenPromises(story).join("; ")).toContain(promise);
});
