import { expect, test } from "vitest";
import { differences } from "./compare.ts";

test("an object may have more members than expected, at any depth", () => {
  expect(differences({ a: { b: 1 } }, { a: { b: 1, c: 2 }, d: 3 })).toEqual([]);
});

test("each member that differs or is missing is named by its path", () => {
  expect(differences({ a: { b: 1 }, c: [{ d: 2 }], e: 3 }, { a: { b: "1" }, c: [{}] })).toEqual([
    'a.b is "1", not 1',
    "c[0].d is missing, not 2",
    "e is missing, not 3",
  ]);
});

test("arrays have the expected length", () => {
  expect(differences([], [1])).toEqual(["the outcome is [1], not []"]);
});

test.each([
  [{ $present: true }, 0, undefined],
  [{ $absent: true }, undefined, 0],
  [{ $optional: "a" }, undefined, "b"],
  [{ $between: [1, 2] }, 2, 2.5],
  [{ $matches: "^a" }, "ab", "ba"],
  [{ $exactly: { a: 1 } }, { a: 1 }, { a: 1, b: 2 }],
])("%j allows %j, and not %j", (matcher, allowed, other) => {
  expect(differences({ value: matcher }, { value: allowed })).toEqual([]);
  expect(differences({ value: matcher }, { value: other })).toHaveLength(1);
});
