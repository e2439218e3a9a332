import { expect, test } from "vitest";
import { median, percentile } from "./statistics.ts";

test("a percentile is a value that was measured", () => {
  const sorted = Array.from({ length: 200 }, (_, index) => index + 1);
  expect(percentile(sorted, 0.5)).toBe(100);
  expect(percentile(sorted, 0.99)).toBe(198);
  expect(percentile([7], 0.99)).toBe(7);
});

test("a percentile of nothing is refused", () => {
  expect(() => percentile([], 0.5)).toThrow("nothing was measured");
});

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 3, 2], 2.5],
  [[10, 9, 1], 9],
])("the median of %j is %d", (values, middle) => {
  expect(median(values)).toBe(middle);
});
