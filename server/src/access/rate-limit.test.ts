import { expect, test } from "vitest";
import { createRateLimit, type Rate } from "./rate-limit.ts";

const TENANT = 1;

/** Returns how many of `asked` operations at one moment get a token. */
function countTaken(
  limit: ReturnType<typeof createRateLimit>,
  rate: Rate,
  nowMs: number,
  asked: number,
): number {
  return Array.from({ length: asked }, () => limit.take(TENANT, rate, nowMs)).filter((waitMs) => waitMs === 0)
    .length;
}

test("a burst is admitted at once, and then the rate", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 10, burst: 30 };
  expect(countTaken(limit, rate, 0, 100)).toBe(30);
  expect(countTaken(limit, rate, 500, 100)).toBe(5);
  expect(countTaken(limit, rate, 1500, 100)).toBe(10);
  expect(countTaken(limit, rate, 60_000, 100)).toBe(30);
});

test("a refused operation is told when there is a token, and gets it then", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 4, burst: 1 };
  expect(limit.take(TENANT, rate, 0)).toBe(0);
  expect(limit.take(TENANT, rate, 100)).toBe(150);
  expect(limit.take(TENANT, rate, 250)).toBe(0);
});

test("a debt delays later operations for at most ten seconds", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 10, burst: 10 };
  for (let i = 0; i < 15; i++) limit.owe(TENANT, rate, 0, 1);
  expect(limit.take(TENANT, rate, 0)).toBe(600);
  for (let i = 0; i < 10_000; i++) limit.owe(TENANT, rate, 0, 1);
  expect(limit.take(TENANT, rate, 0)).toBe(10_100);
});

test("several tokens can be owed at once, and the time until the debt is paid is returned", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 10, burst: 10 };
  expect(limit.owedMs(TENANT, rate, 0)).toBe(0);
  limit.owe(TENANT, rate, 0, 25);
  expect(limit.owedMs(TENANT, rate, 0)).toBe(1500);
  expect(limit.owedMs(TENANT, rate, 1000)).toBe(500);
  expect(limit.owedMs(TENANT, rate, 2000)).toBe(0);
});

test("a share of less than one operation still admits one", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 0.25, burst: 0.25 };
  expect(countTaken(limit, rate, 0, 5)).toBe(1);
  expect(countTaken(limit, rate, 4000, 5)).toBe(1);
});

test("each tenant has its own bucket", () => {
  const limit = createRateLimit();
  const rate = { perSecond: 1, burst: 1 };
  expect([limit.take(1, rate, 0), limit.take(2, rate, 0)]).toEqual([0, 0]);
});
