import { expect, test } from "vitest";
import { createTenantLimiter, type TenantLimiter } from "./fair-queue.ts";

const SLOTS = 32;
const NO_LIMIT = Number.POSITIVE_INFINITY;

function newLimiter(weights: Readonly<Record<number, number>> = {}, slotsPerTenant = SLOTS): TenantLimiter {
  return createTenantLimiter({ weightOf: (tenant) => weights[tenant] ?? 1, slotsPerTenant });
}

function noteAll(limiter: TenantLimiter, tenants: readonly number[], nowMs: number): void {
  for (const tenant of tenants) limiter.noteActivity(tenant, nowMs);
}

test("a tenant that is active alone has no limit", () => {
  const limiter = newLimiter();
  expect(limiter.maxInFlightOf(1, 0)).toBe(NO_LIMIT);
  noteAll(limiter, [1, 1, 1], 0);
  expect(limiter.maxInFlightOf(1, 0)).toBe(NO_LIMIT);
});

test("tenants of equal weight have the same number of slots, however many are active", () => {
  const limiter = newLimiter();
  noteAll(limiter, [1, 2], 0);
  expect([1, 2].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual([SLOTS, SLOTS]);
  noteAll(limiter, [3, 1, 4], 0);
  expect([1, 2, 3, 4].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual(Array(4).fill(SLOTS));
});

test("tenants divide all slots by their weights, and each has at least one", () => {
  const limiter = newLimiter({ 2: 3, 3: 100 });
  noteAll(limiter, [1, 2], 0);
  expect([limiter.maxInFlightOf(1, 0), limiter.maxInFlightOf(2, 0)]).toEqual([16, 48]);
  limiter.noteActivity(3, 0);
  expect([1, 2, 3].map((tenant) => limiter.maxInFlightOf(tenant, 0))).toEqual([1, 2, 92]);
});

test("a changed weight applies from the tenant's next activity after another tenant's", () => {
  const weights: Record<number, number> = {};
  const limiter = newLimiter(weights);
  noteAll(limiter, [1, 2], 0);
  weights[1] = 3;
  noteAll(limiter, [1, 2], 1);
  expect([limiter.maxInFlightOf(1, 1), limiter.maxInFlightOf(2, 1)]).toEqual([48, 16]);
  expect(limiter.weightOf(1)).toBe(3);
});

test("a tenant without activity for a second no longer counts", () => {
  const limiter = newLimiter({ 2: 3 });
  noteAll(limiter, [1, 2, 3], 0);
  limiter.noteActivity(1, 999);
  expect(limiter.maxInFlightOf(1, 999)).toBe(19);
  expect(limiter.maxInFlightOf(1, 1000)).toBe(NO_LIMIT);
  limiter.noteActivity(3, 1000);
  expect(limiter.maxInFlightOf(1, 1000)).toBe(SLOTS);
});

test("a tenant whose activity is older than a second still has its share beside active tenants", () => {
  const limiter = newLimiter({ 1: 3 });
  limiter.noteActivity(1, 0);
  limiter.noteActivity(2, 5000);
  expect(limiter.maxInFlightOf(1, 5000)).toBe(48);
});

test("with 0 slots per tenant, no tenant is limited", () => {
  const limiter = newLimiter({ 2: 3 }, 0);
  noteAll(limiter, [1, 2], 0);
  expect([limiter.maxInFlightOf(1, 0), limiter.weightOf(2)]).toEqual([NO_LIMIT, 3]);
});
