import { expect, test } from "vitest";
import { placeInterval } from "./namespace-quality.tsx";

test("an interval is inside of its picture, however narrow it is", () => {
  expect(placeInterval(0.25, 0.5, 0.75, 100)).toEqual({ from: 25, width: 50, at: 50 });
  expect(placeInterval(1, 1, 1, 100)).toEqual({ from: 99, width: 1, at: 100 });
  expect(placeInterval(0, 0, 0, 100)).toEqual({ from: 0, width: 1, at: 0 });
});
