import { expect, it } from "vitest";
import { markAt } from "./figure.tsx";

const MARKS = [
  { from: 10, to: 20, label: "a" },
  { from: 30, to: Number.POSITIVE_INFINITY, label: "b" },
];

it("a position reads the mark that it is in, and none beside them", () => {
  expect([9, 10, 19, 20, 29, 30, 1_000].map((x) => markAt(MARKS, x))).toEqual([
    ...[undefined, 0, 0, undefined, undefined, 1, 1],
  ]);
});
