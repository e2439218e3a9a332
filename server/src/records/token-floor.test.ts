import { expect, test } from "vitest";
import { createTokenFloor } from "./token-floor.ts";

test("a floor is raised by higher tokens only", () => {
  const floor = createTokenFloor(() => 0);
  expect(floor.current()).toBe(0);
  floor.raise(1000);
  floor.raise(999);
  expect(floor.current()).toBe(1000);
});

test("a floor rises beyond ten seconds of other replicas' tokens, slower than the clock", () => {
  let nowMs = 0;
  const floor = createTokenFloor(() => nowMs);
  floor.raise(1000);
  // Until a row can be swept.
  nowMs = 180_000;
  const STATEMENTS_PER_S = 6000;
  expect(floor.current()).toBeGreaterThan(1000 + 10 * STATEMENTS_PER_S * 256);
  expect(floor.current()).toBeLessThan(1000 + (nowMs * 1000) / 5);
});

test("a floor that has risen automatically is not lowered by a token below it", () => {
  let nowMs = 0;
  const floor = createTokenFloor(() => nowMs);
  floor.raise(1000);
  nowMs = 100;
  const risen = floor.current();
  floor.raise(1001);
  expect(floor.current()).toBe(risen);
});
