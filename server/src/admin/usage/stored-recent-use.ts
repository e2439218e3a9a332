import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { float8Array, textArray } from "../../database/sql-arrays.ts";
import { type RefusedByTenant, type RefusedOperations, sumRefused } from "./recent-refusals.ts";
import {
  answeredAndRefused,
  type CountsByNamespace,
  type EndedMinute,
  RECENT_COUNTERS,
  type RecentCounts,
  type RecentUse,
  sumOf,
} from "./recent-use.ts";

/** Minutes are shown for an hour. Those of replicas that have stopped are deleted by the others. */
const storeRecent = {
  name: "store_recent_use",
  text: `
with now_row as (
  insert into usage_now as n (replica_id, valid_until, seconds, counts, refused)
  values ($1::uuid, ${nowBy("$7")} + make_interval(secs => $2::float8 / 1000), $3::float8, $4::jsonb, $8::jsonb)
  on conflict (replica_id) do update set
    valid_until = excluded.valid_until, seconds = excluded.seconds, counts = excluded.counts, refused = excluded.refused
), stopped as (
  delete from usage_now where replica_id <> $1::uuid and valid_until < ${nowBy("$7")} - interval '10 minutes'
), old as (
  delete from usage_minutes where minute < ${nowBy("$7")} - interval '62 minutes'
)
insert into usage_minutes as m (minute, replica_id, counts)
select to_timestamp(i.minute / 1000), $1::uuid, i.counts::jsonb
  from unnest($5::float8[], $6::text[]) as i (minute, counts)
on conflict (minute, replica_id) do update set counts = excluded.counts`,
};

/** Stores a replica's last minute, and minutes that have ended. It can be repeated. */
export async function storeRecentUse(
  runner: Runner,
  use: {
    readonly replicaId: string;
    /** How long the last minute is shown, unless it is stored again. */
    readonly validForMs: number;
    readonly lastMinute: ReturnType<RecentUse["lastMinute"]>;
    readonly ended: readonly EndedMinute[];
    /** Of the last minute. */
    readonly refused: RefusedByTenant;
    /** As DatabaseClock. */
    readonly latestMs?: number | undefined;
  },
): Promise<void> {
  const { replicaId, validForMs, lastMinute, ended, refused, latestMs } = use;
  await runner.run(storeRecent, [
    ...[replicaId, validForMs, lastMinute.seconds, JSON.stringify(lastMinute.counts)],
    float8Array(ended.map(({ minuteMs }) => minuteMs)),
    textArray(ended.map(({ counts }) => JSON.stringify(counts))),
    ...[latestMs ?? null, JSON.stringify(refused)],
  ]);
}

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

/** A tenant's minute, the sums of all replicas. */
export interface UsedMinute {
  readonly tenantId: number;
  readonly minuteMs: number;
  readonly counts: RecentCounts;
  readonly peakCallsPerSecond: number;
}

/** Each replica has a row for each minute in which it was used: each is read once, regardless of the number of tenants. */
const readMinuteRows = {
  name: "read_usage_minutes",
  text: `
select m.minute_ms as "minuteMs", e.key::int as "tenantId", e.value as counts
  from (select extract(epoch from minute) * 1000 as minute_ms, counts
          from usage_minutes
         where minute > ${nowBy("$3")} - make_interval(mins => $2::int + 1)
           and counts ?| $1::text[]) m
 cross join lateral jsonb_each(m.counts) e
 where e.key = any($1::text[])
 order by m.minute_ms`,
};

/**
 * Returns the minutes of tenants that have ended, of the last `minutes`, at most 60, the earliest first.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readMinutes(
  runner: Runner,
  tenantIds: readonly number[],
  minutes: number,
  latestMs?: number,
): Promise<readonly UsedMinute[]> {
  const rows = await runner.run<Omit<UsedMinute, "peakCallsPerSecond">>(readMinuteRows, [
    ...[textArray(tenantIds.map(String)), minutes, latestMs ?? null],
  ]);
  const found = new Map<string, UsedMinute>();
  for (const { minuteMs, tenantId, counts } of rows) {
    const name = `${minuteMs} ${tenantId}`;
    const before = found.get(name);
    found.set(name, {
      tenantId,
      minuteMs,
      counts: sumOf(before?.counts ?? [], counts.slice(0, RECENT_COUNTERS.length)),
      peakCallsPerSecond: (before?.peakCallsPerSecond ?? 0) + (counts[RECENT_COUNTERS.length] ?? 0) / 1000,
    });
  }
  return [...found.values()];
}
