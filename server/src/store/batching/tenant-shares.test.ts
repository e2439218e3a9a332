import { expect, test } from "vitest";
import { createTenantShares, type TenantShares } from "./tenant-shares.ts";

const PLACES = 32;
const EVERYTHING = Number.POSITIVE_INFINITY;

function newShares(weights: Readonly<Record<number, number>> = {}, places = PLACES): TenantShares {
  return createTenantShares({ weightOf: (tenant) => weights[tenant] ?? 1, places });
}

function callAll(shares: TenantShares, tenants: readonly number[], nowMs: number): void {
  for (const tenant of tenants) shares.called(tenant, nowMs);
}

test("a tenant that alone calls has as many places as it likes", () => {
  const shares = newShares();
  expect(shares.placesOf(1, 0)).toBe(EVERYTHING);
  callAll(shares, [1, 1, 1], 0);
  expect(shares.placesOf(1, 0)).toBe(EVERYTHING);
});

test("tenants of one weight have as many places each, however many call", () => {
  const shares = newShares();
  callAll(shares, [1, 2], 0);
  expect([1, 2].map((tenant) => shares.placesOf(tenant, 0))).toEqual([PLACES, PLACES]);
  callAll(shares, [3, 1, 4], 0);
  expect([1, 2, 3, 4].map((tenant) => shares.placesOf(tenant, 0))).toEqual(Array(4).fill(PLACES));
});

test("tenants divide the places that they bring by their weights, and each has one", () => {
  const shares = newShares({ 2: 3, 3: 100 });
  callAll(shares, [1, 2], 0);
  expect([shares.placesOf(1, 0), shares.placesOf(2, 0)]).toEqual([16, 48]);
  shares.called(3, 0);
  expect([1, 2, 3].map((tenant) => shares.placesOf(tenant, 0))).toEqual([1, 2, 92]);
});

test("a change of weight counts from the tenant's next call among others'", () => {
  const weights: Record<number, number> = {};
  const shares = newShares(weights);
  callAll(shares, [1, 2], 0);
  weights[1] = 3;
  callAll(shares, [1, 2], 1);
  expect([shares.placesOf(1, 1), shares.placesOf(2, 1)]).toEqual([48, 16]);
  expect(shares.weightOf(1)).toBe(3);
});

test("who has not called for a second no longer counts", () => {
  const shares = newShares({ 2: 3 });
  callAll(shares, [1, 2, 3], 0);
  shares.called(1, 999);
  expect(shares.placesOf(1, 999)).toBe(19);
  expect(shares.placesOf(1, 1000)).toBe(EVERYTHING);
  shares.called(3, 1000);
  expect(shares.placesOf(1, 1000)).toBe(PLACES);
});

test("a tenant that waits for longer than that has its share beside those that call", () => {
  const shares = newShares({ 1: 3 });
  shares.called(1, 0);
  shares.called(2, 5000);
  expect(shares.placesOf(1, 5000)).toBe(48);
});

test("with no places to divide, nobody is bounded", () => {
  const shares = newShares({ 2: 3 }, 0);
  callAll(shares, [1, 2], 0);
  expect([shares.placesOf(1, 0), shares.weightOf(2)]).toEqual([EVERYTHING, 3]);
});
