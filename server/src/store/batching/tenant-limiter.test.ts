import { expect, test } from "vitest";
import { createTenantLimiter, type TenantLimiter } from "./tenant-limiter.ts";

const PLACES = 32;
const EVERYTHING = Number.POSITIVE_INFINITY;

function newShares(weights: Readonly<Record<number, number>> = {}, places = PLACES): TenantLimiter {
  return createTenantLimiter({ weightOf: (tenant) => weights[tenant] ?? 1, places });
}

function callAll(limiter: TenantLimiter, tenants: readonly number[], nowMs: number): void {
  for (const tenant of tenants) limiter.noteActivity(tenant, nowMs);
}

test("a tenant that alone calls has as many places as it likes", () => {
  const limiter = newShares();
  expect(limiter.maxInFlightOf(1, 0)).toBe(EVERYTHING);
  callAll(limiter, [1, 1, 1], 0);
  expect(limiter.maxInFlightOf(1, 0)).toBe(EVERYTHING);
});

test("tenants of one weight have as many places each, however many call", () => {
  const limiter = newShares();
  callAll(limiter, [1, 2], 0);
  expect([1, 2].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual([PLACES, PLACES]);
  callAll(limiter, [3, 1, 4], 0);
  expect([1, 2, 3, 4].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual(Array(4).fill(PLACES));
});

test("tenants divide the places that they bring by their weights, and each has one", () => {
  const limiter = newShares({ 2: 3, 3: 100 });
  callAll(limiter, [1, 2], 0);
  expect([limiter.maxInFlightOf(1, 0), limiter.maxInFlightOf(2, 0)]).toEqual([16, 48]);
  limiter.noteActivity(3, 0);
  expect([1, 2, 3].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual([1, 2, 92]);
});

test("a change of weight counts from the tenant's next call among others'", () => {
  const weights: Record<number, number> = {};
  const limiter = newShares(weights);
  callAll(limiter, [1, 2], 0);
  weights[1] = 3;
  callAll(limiter, [1, 2], 1);
  expect([limiter.maxInFlightOf(1, 1), limiter.maxInFlightOf(2, 1)]).toEqual([48, 16]);
  expect(limiter.weightOf(1)).toBe(3);
});

test("who has not called for a second no longer counts", () => {
  const limiter = newShares({ 2: 3 });
  callAll(limiter, [1, 2, 3], 0);
  limiter.noteActivity(1, 999);
  expect(limiter.maxInFlightOf(1, 999)).toBe(19);
  expect(limiter.maxInFlightOf(1, 1000)).toBe(EVERYTHING);
  limiter.noteActivity(3, 1000);
  expect(limiter.maxInFlightOf(1, 1000)).toBe(PLACES);
});

test("a tenant that waits for longer than that has its share beside those that call", () => {
  const limiter = newShares({ 1: 3 });
  limiter.noteActivity(1, 0);
  limiter.noteActivity(2, 5000);
  expect(limiter.maxInFlightOf(1, 5000)).toBe(48);
});

test("with no places to divide, nobody is bounded", () => {
  const limiter = newShares({ 2: 3 }, 0);
  callAll(limiter, [1, 2], 0);
  expect([limiter.maxInFlightOf(1, 0), limiter.weightOf(2)]).toEqual([EVERYTHING, 3]);
});
