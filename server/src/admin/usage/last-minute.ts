import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { countFields } from "../../domain/counts.ts";
import { type UsageNow, UsageNowSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { type RefusedOperations, sumRefused } from "./recent-refusals.ts";
import {
  answeredAndRefused,
  type CountsByNamespace,
  latencyQuantileMs,
  namedCounts,
  RECENT_COUNTERS,
  type RecentCounts,
  sumOf,
} from "./recent-use.ts";

/** The counts of all replicas of the last minute. */
export interface LastMinute {
  readonly counts: RecentCounts;
  /** Each replica's answered claims, by its own time. */
  readonly claimsPerSecond: number;
  /** The same of calls that quotas refused. */
  readonly refusedPerSecond: number;
}

/** Of what was not used in the last minute. */
export const UNUSED: LastMinute = { counts: [], claimsPerSecond: 0, refusedPerSecond: 0 };

/** Each replica has one row. */
const readNowOfTenant = {
  name: "read_usage_now",
  text: `
select seconds::numeric, coalesce(counts -> $1::text, '{}') as counts, coalesce(refused -> $1::text, '[]') as refused
  from usage_now
 where valid_until > ${nowBy("$2")} and (counts ? $1::text or refused ? $1::text)`,
};

/** A tenant's last minute. */
export interface TenantMinute {
  readonly byNamespace: ReadonlyMap<string, LastMinute>;
  /** The most first. */
  readonly refused: readonly RefusedOperations[];
}

/**
 * Returns a tenant's last minute.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readLastMinute(
  runner: Runner,
  tenantId: number,
  latestMs?: number,
): Promise<TenantMinute> {
  const rows = await runner.run<{
    seconds: number;
    counts: CountsByNamespace[string];
    refused: readonly RefusedOperations[];
  }>(readNowOfTenant, [String(tenantId), latestMs ?? null]);
  const byNamespace = new Map<string, LastMinute>();
  for (const { seconds, counts } of rows)
    for (const [namespace, of] of Object.entries(counts)) addReplica(byNamespace, namespace, of, seconds);
  return { byNamespace, refused: sumRefused(rows.flatMap(({ refused }) => refused)) };
}

const readNowOfAll = {
  name: "read_usage_now_of_all",
  text: `select seconds::numeric, counts from usage_now where valid_until > ${nowBy("$1")}`,
};

/**
 * Returns the last minute of every tenant that was used in it, by its id.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readLastMinutes(
  runner: Runner,
  latestMs?: number,
): Promise<ReadonlyMap<number, LastMinute>> {
  const rows = await runner.run<{ seconds: number; counts: CountsByNamespace }>(readNowOfAll, [
    latestMs ?? null,
  ]);
  const byTenant = new Map<number, LastMinute>();
  for (const { seconds, counts } of rows)
    for (const [id, namespaces] of Object.entries(counts))
      for (const of of Object.values(namespaces)) addReplica(byTenant, Number(id), of, seconds);
  return byTenant;
}

/** Adds what one replica counted in some seconds. */
function addReplica<Key>(sums: Map<Key, LastMinute>, key: Key, counts: RecentCounts, seconds: number): void {
  const { answered, refused } = answeredAndRefused(counts);
  const counted = { counts, claimsPerSecond: answered / seconds, refusedPerSecond: refused / seconds };
  sums.set(key, addLastMinutes(sums.get(key) ?? UNUSED, counted));
}

/** Adds the counts of two replicas, or of two namespaces. */
export function addLastMinutes(one: LastMinute, other: LastMinute): LastMinute {
  return {
    counts: sumOf(one.counts, other.counts),
    claimsPerSecond: one.claimsPerSecond + other.claimsPerSecond,
    refusedPerSecond: one.refusedPerSecond + other.refusedPerSecond,
  };
}

/** Returns the rate of a last minute's calls: claims, and what quotas refused. */
export function callsPerSecond({ claimsPerSecond, refusedPerSecond }: LastMinute): number {
  return claimsPerSecond + refusedPerSecond;
}

/** Returns a last minute as callers see it. */
export function nowMessage(
  namespace: string,
  { counts, claimsPerSecond, refusedPerSecond }: LastMinute,
): UsageNow {
  const latency = counts.slice(RECENT_COUNTERS.length);
  const medianMs = latencyQuantileMs(latency, 0.5);
  const p99Ms = latencyQuantileMs(latency, 0.99);
  return create(UsageNowSchema, {
    namespace,
    claimsPerSecond,
    refusedPerSecond,
    ...countFields(namedCounts(counts)),
    ...(medianMs !== undefined && { medianLatency: durationFromMs(medianMs) }),
    ...(p99Ms !== undefined && { p99Latency: durationFromMs(p99Ms) }),
  });
}
