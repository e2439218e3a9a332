import type { UsedNamespace } from "../../records/after-operation.ts";
import type { UsageCount } from "./add-usage.ts";
import { QUOTA_REFUSALS } from "./usage.ts";
import { LATENCY_BUCKETS, LATENCY_MS } from "./usage-meter.ts";

/** What is counted of a minute, in the order of its numbers. */
export const RECENT_COUNTERS = [
  "claims",
  "duplicates",
  "mismatches",
  "late_keys_refused",
  ...QUOTA_REFUSALS,
  "would_be_refused",
  "fenced",
] as const;

/** The counters, and after them claims by `latencyBucket`. Zeros at the end may be missing. */
export type RecentCounts = readonly number[];

/** Returns the counters by their names. */
export function namedCounts(counts: RecentCounts) {
  const named = RECENT_COUNTERS.map((name, index) => [name, at(counts, index)]);
  return Object.fromEntries(named) as Readonly<Record<(typeof RECENT_COUNTERS)[number], number>>;
}

/** The counts of namespaces, by tenant. */
export type CountsByNamespace = Readonly<Record<string, Readonly<Record<string, RecentCounts>>>>;

/** A minute that has ended, in milliseconds since the Unix epoch. */
export interface EndedMinute {
  readonly minuteMs: number;
  /** By tenant; after the counters the highest rate in calls a second, in thousandths. */
  readonly counts: Readonly<Record<string, RecentCounts>>;
}

const LENGTH = RECENT_COUNTERS.length + LATENCY_BUCKETS;
const CLAIMS = RECENT_COUNTERS.indexOf("claims");
const REFUSED = QUOTA_REFUSALS.map((name) => RECENT_COUNTERS.indexOf(name));
const WINDOW_S = 60;
const MINUTE_MS = 60_000;

/**
 * Namespaces that have counts of their own, ten times as many as tenants have labels of metrics: 100 KB of a replica's row. Those
 * with the fewest calls share the counts of their tenant's calls without a namespace, and tenants beyond them have none.
 */
const MAX_NAMESPACES = 1000;

interface Entry extends UsedNamespace {
  readonly counts: RecentCounts;
}

interface Slot {
  readonly seconds: number;
  readonly entries: readonly Entry[];
}

/** The counts that a replica flushes, of the last minute, and of each minute since the last call of `takeEnded`. */
export type RecentUse = ReturnType<typeof createRecentUse>;

/** @param startedAtMs when counting begins, in milliseconds since the Unix epoch; `startedSteadyMs`: as `endSlot`. */
export function createRecentUse(
  startedAtMs: number,
  maxNamespaces = MAX_NAMESPACES,
  startedSteadyMs = performance.now(),
) {
  let slotFromMs = startedSteadyMs;
  let open: Entry[] = [];
  let slots: Slot[] = [];
  let minuteMs = minuteOf(startedAtMs);
  let byTenant = new Map<number, number[]>();
  let ended: EndedMinute[] = [];

  function addToMinute(entries: readonly Entry[], seconds: number): void {
    for (const [tenantId, ofTenant] of Map.groupBy(entries, (entry) => entry.tenantId)) {
      const counts = ofTenant.map((entry) => entry.counts).reduce(sumOf);
      if (counts.every((count) => count === 0)) continue;
      const sum = byTenant.get(tenantId) ?? new Array<number>(RECENT_COUNTERS.length + 1).fill(0);
      for (const index of RECENT_COUNTERS.keys()) sum[index] = at(sum, index) + at(counts, index);
      const perThousandSeconds = Math.round((attempts(counts) / seconds) * 1000);
      sum[RECENT_COUNTERS.length] = Math.max(at(sum, RECENT_COUNTERS.length), perThousandSeconds);
      byTenant.set(tenantId, sum);
    }
  }

  return {
    /** Adds the counts of a flush. */
    add(counts: readonly UsageCount[]): void {
      open = busiest([...open, ...counts.map(entryOf)], maxNamespaces);
    },
    /**
     * Ends a time of counting, which began at the end of the one before. `nowMs`, since the Unix epoch, names the minute;
     * `steadyMs` measures how long the time was, by a clock that no one sets.
     */
    endSlot(nowMs: number, steadyMs = performance.now()): void {
      // Two flushes within a millisecond.
      const seconds = Math.max(steadyMs - slotFromMs, 1) / 1000;
      slots.push({ seconds, entries: open });
      while (slots.length > 1 && total(slots.slice(1)) >= WINDOW_S) slots = slots.slice(1);
      const minute = minuteOf(nowMs);
      if (minute !== minuteMs) {
        if (byTenant.size > 0) ended.push({ minuteMs, counts: Object.fromEntries(byTenant) });
        byTenant = new Map();
        minuteMs = minute;
      }
      addToMinute(open, seconds);
      slotFromMs = steadyMs;
      open = [];
    },
    /** Returns the sums of the times that ended within the last minute, and how long they took together. */
    lastMinute(): { readonly seconds: number; readonly counts: CountsByNamespace } {
      const counts: Record<string, Record<string, RecentCounts>> = {};
      const all = busiest(
        slots.flatMap(({ entries }) => entries),
        maxNamespaces,
      );
      for (const { tenantId, namespace, counts: of } of all) {
        if (of.every((count) => count === 0)) continue;
        counts[tenantId] ??= {};
        counts[tenantId][namespace] = withoutZeros(of);
      }
      return { seconds: total(slots), counts };
    },
    /** Returns the minutes that have ended. They are returned again until `forgetEnded`. */
    ended: () => ended,
    forgetEnded(): void {
      ended = [];
    },
  };
}

/** Returns the time within which a share of claims was answered, at most twice too long; undefined: there was no claim. */
export function latencyQuantileMs(buckets: readonly number[], share: number): number | undefined {
  const wanted = share * buckets.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return undefined;
  let counted = 0;
  const bucket = buckets.findIndex((count) => {
    counted += count;
    return counted >= wanted;
  });
  return LATENCY_MS * 2 ** bucket;
}

/** Returns how many claims were answered, and how many calls quotas refused. */
export function answeredAndRefused(counts: RecentCounts) {
  return {
    answered: at(counts, CLAIMS),
    refused: REFUSED.reduce((sum, index) => sum + at(counts, index), 0),
  };
}

/** Returns how many claims were answered, and calls refused by quotas. */
export function attempts(counts: RecentCounts): number {
  const { answered, refused } = answeredAndRefused(counts);
  return answered + refused;
}

function entryOf({ tenantId, namespace, counters, latency }: UsageCount): Entry {
  const counts = RECENT_COUNTERS.map((name) =>
    name === "duplicates" ? counters.replayed + counters.in_progress : counters[name],
  );
  return { tenantId, namespace, counts: [...counts, ...latency] };
}

/** Adds up the entries of each namespace, and returns the busiest of them with what remains of their tenants. */
function busiest(entries: readonly Entry[], max: number): Entry[] {
  const sums = new Map<string, Entry>();
  for (const entry of entries) addTo(sums, entry);
  if (sums.size <= max) return [...sums.values()];
  const sorted = [...sums].sort(([, a], [, b]) => attempts(b.counts) - attempts(a.counts));
  const kept = new Map(sorted.slice(0, max));
  const tenants = new Set(Array.from(kept.values(), ({ tenantId }) => tenantId));
  for (const [, { tenantId, counts }] of sorted.slice(max))
    if (tenants.has(tenantId)) addTo(kept, { tenantId, namespace: "", counts });
  return [...kept.values()];
}

function addTo(sums: Map<string, Entry>, { tenantId, namespace, counts }: Entry): void {
  const name = `${tenantId} ${namespace}`;
  sums.set(name, { tenantId, namespace, counts: sumOf(sums.get(name)?.counts ?? [], counts) });
}

/** Returns the sums of two lists of counts. */
export function sumOf(one: RecentCounts, other: RecentCounts): number[] {
  return Array.from({ length: LENGTH }, (_, index) => at(one, index) + at(other, index));
}

function withoutZeros(counts: RecentCounts): RecentCounts {
  return counts.slice(0, counts.findLastIndex((count) => count > 0) + 1);
}

function at(counts: RecentCounts, index: number): number {
  return counts[index] ?? 0;
}

function total(slots: readonly Slot[]): number {
  return slots.reduce((sum, { seconds }) => sum + seconds, 0);
}

function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}
