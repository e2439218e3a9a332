import { expect, test } from "vitest";
import { largerBatch, smallerBatch } from "./batch-size.ts";

/** Returns a size and the `count` sizes that follow it. */
function sizesFrom(rows: number, count: number, next: (rows: number) => number): readonly number[] {
  const sizes = [rows];
  for (let i = 0; i < count; i++) sizes.push(next(sizes.at(-1) as number));
  return sizes;
}

test("each failure halves the batch, down to one row", () => {
  expect(sizesFrom(1000, 11, smallerBatch)).toEqual([1000, 500, 250, 125, 63, 32, 16, 8, 4, 2, 1, 1]);
});

test("each success makes the batch larger by a tenth of the maximum, up to the maximum", () => {
  const sizes = sizesFrom(25, 9, (rows) => largerBatch(rows, 100));
  expect(sizes).toEqual([25, 35, 45, 55, 65, 75, 85, 95, 100, 100]);
  expect(sizesFrom(1, 3, (rows) => largerBatch(rows, 3))).toEqual([1, 2, 3, 3]);
});
