import { expect, test } from "vitest";
import { budgetShareOf } from "./memory-limit.ts";

const MIB = 1024 * 1024;

test.each([
  [64 * 1024, 1],
  [1024, 1],
  [640, 0.5],
  [512, 1 / 3],
  [256, 1 / 8],
  [0, 1 / 8],
])("with %i MiB of memory, the budgets have %f of their size", (limitMib, share) => {
  expect(budgetShareOf(limitMib * MIB)).toBeCloseTo(share, 10);
});

test("all budgets together fit the 512 MiB of a container, beside what the process takes anyway", () => {
  const budgets = (384 + 128) * budgetShareOf(512 * MIB) + 24;
  expect(budgets + 256).toBeLessThan(512);
});
