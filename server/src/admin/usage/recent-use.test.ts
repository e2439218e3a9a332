import { expect, test } from "vitest";
import type { UsageCount } from "./add-usage.ts";
import { attempts, createRecentUse, latencyQuantileMs, RECENT_COUNTERS } from "./recent-use.ts";
import { USAGE_COUNTERS, type UsageCounter } from "./usage.ts";
import { LATENCY_BUCKETS, latencyBucket } from "./usage-meter.ts";

/** A minute, in milliseconds since the Unix epoch. */
const NOON = 1_764_158_400_000;
const S = 1000;

const startAtNoon = (maxNamespaces?: number) => createRecentUse(NOON, maxNamespaces, 0);

function used(
  tenantId: number,
  namespace: string,
  counters: Partial<Record<UsageCounter, number>>,
): UsageCount {
  const zeros = Object.fromEntries(USAGE_COUNTERS.map((name) => [name, 0]));
  const all = { ...zeros, ...counters } as Record<UsageCounter, number>;
  return { tenantId, namespace, counters: all, latency: [], retentions: [] };
}

function useEvery5s(
  recent: ReturnType<typeof createRecentUse>,
  fromS: number,
  claims: readonly number[],
): void {
  for (const [index, each] of claims.entries()) {
    recent.add([used(1, "charges", { claims: each })]);
    const afterMs = (fromS + (index + 1) * 5) * S;
    recent.endSlot(NOON + afterMs, afterMs);
  }
}

test("the last minute forgets what is older, and knows how long it is", () => {
  const recent = startAtNoon();
  useEvery5s(recent, 0, [1000, 1]);
  expect(recent.lastMinute()).toEqual({ seconds: 10, counts: { 1: { charges: [1001] } } });
  useEvery5s(recent, 10, Array(11).fill(2));
  expect(recent.lastMinute()).toEqual({ seconds: 60, counts: { 1: { charges: [23] } } });
  useEvery5s(recent, 65, Array(12).fill(0));
  expect(recent.lastMinute()).toEqual({ seconds: 60, counts: {} });
});

test("duplicates are those that were answered or had to wait; refused claims are attempts", () => {
  const recent = startAtNoon();
  recent.add([
    used(1, "charges", {
      claims: 6,
      granted: 1,
      replayed: 2,
      in_progress: 3,
      refused_by_rate: 7,
      refused_by_bytes: 1,
    }),
  ]);
  recent.endSlot(NOON + S, S);
  const counts = recent.lastMinute().counts[1]?.charges ?? [];
  expect(counts[RECENT_COUNTERS.indexOf("duplicates")]).toBe(5);
  expect(attempts(counts)).toBe(14);
});

test("an ended minute has its tenants' sums and highest rates until it is stored", () => {
  const recent = startAtNoon();
  recent.add([used(1, "charges", { claims: 10 }), used(1, "payouts", { claims: 5, refused_by_rate: 35 })]);
  recent.endSlot(NOON + 5 * S, 5 * S);
  useEvery5s(recent, 5, Array(11).fill(1));
  const [minute] = recent.ended();
  expect(minute?.minuteMs).toBe(NOON);
  const [claims, , , , refused] = minute?.counts[1] ?? [];
  expect([claims, refused, minute?.counts[1]?.at(-1)]).toEqual([25, 35, 10_000]);
  expect(recent.ended()).toHaveLength(1);
  recent.forgetEnded();
  expect(recent.ended()).toEqual([]);
});

test("a clock that is set changes no rate", () => {
  const recent = startAtNoon();
  for (const [index, aheadMs] of [0, -3600 * S, 3600 * S, 3600 * S].entries()) {
    recent.add([used(1, "charges", { claims: 10 })]);
    recent.endSlot(NOON + (index + 1) * 5 * S + aheadMs, (index + 1) * 5 * S);
  }
  expect(recent.lastMinute()).toEqual({ seconds: 20, counts: { 1: { charges: [40] } } });
  for (const { counts } of recent.ended()) expect(counts[1]?.at(-1)).toBe(2000);
});

test("the busiest namespaces are kept; the others of their tenants are added up", () => {
  const recent = startAtNoon(2);
  recent.add([
    used(1, "quiet", { claims: 1 }),
    used(1, "busy", { claims: 100 }),
    used(2, "busy", { refused_by_rate: 50 }),
    used(3, "quiet", { claims: 2 }),
  ]);
  recent.endSlot(NOON + S, S);
  const { counts } = recent.lastMinute();
  expect(counts).toMatchObject({ 1: { busy: [100], "": [1] }, 2: { busy: [0, 0, 0, 0, 50] } });
  expect(counts[3]).toBeUndefined();
});

test("a share of claims took at most a time that is at most twice too long", () => {
  const buckets = Array<number>(LATENCY_BUCKETS).fill(0);
  for (const ms of [0.1, 0.3, 3, 3, 3, 3, 3, 3, 3, 700])
    buckets[latencyBucket(ms)] = (buckets[latencyBucket(ms)] ?? 0) + 1;
  expect(latencyQuantileMs(buckets, 0.5)).toBe(4);
  expect(latencyQuantileMs(buckets, 0.99)).toBe(1024);
  expect(latencyBucket(1e9)).toBe(LATENCY_BUCKETS - 1);
  expect(latencyQuantileMs([], 0.5)).toBeUndefined();
});
