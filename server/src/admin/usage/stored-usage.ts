import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { bigintArray, intArray, textArray } from "../../database/sql-arrays.ts";
import type { UsedNamespace } from "../../records/after-operation.ts";
import { mergedBuckets } from "./late-repeats.ts";
import type { LatenessCounts } from "./lateness.ts";
import { countersBy, USAGE_COUNTERS, type UsageCounter, type UsageCounters } from "./usage.ts";

/** The counted use of a namespace. */
export interface UsageCount extends UsedNamespace {
  readonly counters: Readonly<UsageCounters>;
  /** Answered claims by `latencyBucket`; not stored with the hour. */
  readonly latency: readonly number[];
  /** By distinct key retentions in force: more than one if the policy has changed. */
  readonly retentions: readonly {
    readonly retentionS: number;
    readonly claims: number;
    /** Claims that began an operation. */
    readonly firstClaims: number;
    /** Repeats that were recognised, by `latenessBucket`. */
    readonly repeats: LatenessCounts;
    /** Repeats that came after the end of their record and before the sweep deleted it, by `latenessBucket`. */
    readonly late: LatenessCounts;
  }[];
}

const COUNTERS = USAGE_COUNTERS.join(", ");
/** The first parameter of the counters. */
const FIRST_COUNTER = 15;
const COUNTER_ARRAYS = USAGE_COUNTERS.map((_, index) => `$${index + FIRST_COUNTER}::bigint[]`).join(", ");
const SUMS = USAGE_COUNTERS.map((name) => `${name} = u.${name} + excluded.${name}`).join(",\n  ");

/** SQL for the hour of a flush: now, by the previous clock. */
const THIS_HOUR = hourOf(nowBy(`$${FIRST_COUNTER + USAGE_COUNTERS.length}`));

/**
 * Adds a replica's counts, unless this flush was added before: the same statement stores the number of the flush. Counts of a
 * removed tenant are dropped. `usage_hours.repeat_lateness` has no use.
 */
const addUsageRows = {
  name: "add_usage",
  text: `
with fresh as (
  insert into replicas as r (id, version, usage_seq) values ($1::uuid, $2::text, $3::bigint)
  on conflict (id) do update set usage_seq = excluded.usage_seq
   where r.usage_seq < excluded.usage_seq
  returning 1
), input as (
  select *
    from unnest($4::int[], $5::text[], ${COUNTER_ARRAYS}) as i (tenant_id, namespace, ${COUNTERS})
   order by i.tenant_id, i.namespace collate "C"
), retentions as materialized (
  select i.*
    from unnest($6::int[], $7::text[], $8::int[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[],
                $14::text[])
      as i (tenant_id, namespace, retention_s, claims, first_claims, buckets, repeats, late_buckets, late_repeats),
         fresh
   where exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
   order by i.tenant_id, i.namespace collate "C", i.retention_s
), exposure as (
  insert into insight_hours as u (tenant_id, namespace, hour, retention_s, claims, first_claims, buckets, repeats)
  select i.tenant_id, i.namespace, ${THIS_HOUR}, i.retention_s, i.claims, i.first_claims,
         i.buckets::smallint[], i.repeats::bigint[]
    from retentions i
  on conflict (tenant_id, namespace, hour, retention_s) do update set
    claims = u.claims + excluded.claims,
    first_claims = u.first_claims + excluded.first_claims,
    (buckets, repeats) = (${mergedBuckets("repeats")})
), late as (
  insert into insight_late_hours as u (tenant_id, namespace, hour, retention_s, shift, buckets, repeats, squares)
  select i.tenant_id, i.namespace, ${THIS_HOUR}, i.retention_s, 0,
         i.late_buckets::smallint[], i.late_repeats::bigint[], i.late_repeats::bigint[]
    from retentions i
   where i.late_buckets <> '{}'
  on conflict (tenant_id, namespace, hour, retention_s, shift) do update set
    (buckets, repeats, squares) = (${mergedBuckets("repeats", "squares")})
)
insert into usage_hours as u (tenant_id, hour, namespace, repeat_lateness, ${COUNTERS})
select i.tenant_id, ${THIS_HOUR}, i.namespace, '{}'::bigint[],
       ${USAGE_COUNTERS.map((name) => `i.${name}`).join(", ")}
  from input i, fresh
 where exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
on conflict (tenant_id, hour, namespace) do update set
  ${SUMS}`,
};

/**
 * Stores counts; a retry of the same flush has no effect.
 *
 * @param flush by its replica, and by its number, which increases.
 * @param latestMs as DatabaseClock.
 */
export async function addUsage(
  runner: Runner,
  flush: { readonly replica: { readonly id: string; readonly version: string }; readonly seq: number },
  counts: readonly UsageCount[],
  latestMs?: number,
): Promise<void> {
  const rows = counts.flatMap(({ tenantId, namespace, retentions }) =>
    retentions.map((retention) => ({ tenantId, namespace, ...retention })),
  );
  await runner.run(addUsageRows, [
    flush.replica.id,
    flush.replica.version,
    flush.seq,
    intArray(counts.map(({ tenantId }) => tenantId)),
    textArray(counts.map(({ namespace }) => namespace)),
    intArray(rows.map(({ tenantId }) => tenantId)),
    textArray(rows.map(({ namespace }) => namespace)),
    intArray(rows.map(({ retentionS }) => retentionS)),
    bigintArray(rows.map(({ claims }) => claims)),
    bigintArray(rows.map(({ firstClaims }) => firstClaims)),
    textArray(rows.map(({ repeats }) => `{${[...repeats.keys()].join(",")}}`)),
    textArray(rows.map(({ repeats }) => `{${[...repeats.values()].join(",")}}`)),
    textArray(rows.map(({ late }) => `{${[...late.keys()].join(",")}}`)),
    textArray(rows.map(({ late }) => `{${[...late.values()].join(",")}}`)),
    ...USAGE_COUNTERS.map((name) => bigintArray(counts.map(({ counters }) => counters[name]))),
    latestMs ?? null,
  ]);
}

/** The use of a namespace in one hour. */
export interface UsageHourRow extends Pick<UsageCount, "namespace" | "counters"> {
  /** Repeats by `latenessBucket`. */
  readonly repeats: LatenessCounts;
  /** The beginning of the hour, in milliseconds since the Unix epoch. */
  readonly hourMs: number;
}

/**
 * Selects hours: from the hour that contains `afterMs` (undefined: a day before the end), those that begin before `beforeMs`
 * (undefined: no end), after the last one that was read.
 */
export interface UsageQuery {
  readonly tenantId: number;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly afterMs: number | undefined;
  readonly beforeMs: number | undefined;
  readonly behind: { readonly hourMs: number; readonly namespace: string } | undefined;
  readonly limit: number;
}

/**
 * SQL for the first hour of a query, whose parameters $3 and $4 are `afterMs` and `beforeMs`, and $7 is now by the
 * previous clock.
 */
const FIRST_HOUR = hourOf(`coalesce(
     to_timestamp($3::float8 / 1000),
     least(now(), to_timestamp($4::float8 / 1000), to_timestamp($7::float8 / 1000)) - interval '24 hours')`);

/** SQL for the hours after `hour_ms` and `namespace`. */
const COLUMNS = `
extract(epoch from u.hour) * 1000 as hour_ms, u.namespace,
       ${USAGE_COUNTERS.map((name) => `u.${name}`).join(", ")},
       (select json_agg(json_build_array(s.bucket, s.repeats) order by s.bucket)
          from (select e.bucket, sum(e.repeats) as repeats
                  from insight_hours h, unnest(h.buckets, h.repeats) as e (bucket, repeats)
                 where h.tenant_id = u.tenant_id
                   and h.namespace = u.namespace
                   and h.hour = u.hour
                 group by e.bucket) s) as repeats`.trim();

const readUsageRows = {
  name: "read_usage",
  text: `
select ${COLUMNS}
  from usage_hours u
 where tenant_id = $1::int
   and hour >= ${FIRST_HOUR}
   and hour < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
   and (tenant_id, hour, namespace) > ($1::int, to_timestamp($5::float8 / 1000), $6::text)
 order by tenant_id, hour, namespace
 limit $2::int`,
};

/** SQL for the hours in which a tenant was used, by one search of the primary key for each, however many namespaces were used in it. */
const USED_HOURS = `
bounds as materialized (
  select ${FIRST_HOUR} as first, coalesce(to_timestamp($4::float8 / 1000), 'infinity') as until
), used (hour) as (
  (select u.hour
     from usage_hours u
    where u.tenant_id = $1::int
      and u.hour >= (select first from bounds)
      and u.hour > to_timestamp($5::float8 / 1000)
    order by u.tenant_id, u.hour
    limit 1)
  union all
  select (select u.hour
            from usage_hours u
           where u.tenant_id = $1::int
             and u.hour > used.hour
           order by u.tenant_id, u.hour
           limit 1)
    from used
   where used.hour < (select until from bounds)
)`.trim();

/** As `read_usage`, of one namespace: reads no row of the others. */
const readUsageOfNamespace = {
  name: "read_usage_of_namespace",
  text: `
with recursive ${USED_HOURS}
select ${COLUMNS}
  from (select hour from used where hour < (select until from bounds)) used
 cross join lateral (
   select * from usage_hours own
    where own.tenant_id = $1::int
      and own.hour = used.hour
      and own.namespace = $2::text
    limit 1) u
 order by u.hour
 limit $6::int`,
};

/** Returns SQL for the hour that contains an instant, UTC. */
function hourOf(instant: string): string {
  return `date_trunc('hour', ${instant} at time zone 'utc') at time zone 'utc'`;
}

type Row = Readonly<Record<UsageCounter, string>> & {
  readonly hour_ms: number;
  readonly namespace: string;
  readonly repeats: readonly (readonly [bucket: number, repeats: number])[] | null;
};

/** Returns the parameters for the range of a query. */
function rangeOf({ afterMs, beforeMs }: Pick<UsageQuery, "afterMs" | "beforeMs">) {
  return [afterMs ?? null, beforeMs ?? null];
}

/**
 * Returns hours by hour, then namespace.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readUsage(
  runner: Runner,
  query: UsageQuery,
  latestMs?: number,
): Promise<readonly UsageHourRow[]> {
  const { tenantId, namespace, behind, limit } = query;
  const range = [...rangeOf(query), behind?.hourMs ?? 0];
  const latest = latestMs ?? null;
  const rows =
    namespace === undefined
      ? await runner.run<Row>(readUsageRows, [tenantId, limit, ...range, behind?.namespace ?? "", latest])
      : await runner.run<Row>(readUsageOfNamespace, [tenantId, namespace, ...range, limit, latest]);
  return rows.map((row) => ({
    hourMs: row.hour_ms,
    namespace: row.namespace,
    counters: countersBy((name) => Number(row[name])),
    repeats: new Map(row.repeats),
  }));
}

/** The use of an hour: of all namespaces together, or of one. */
export type UsageSum = Pick<UsageHourRow, "counters" | "hourMs">;

/** Adds the rows of each hour, which lie side by side in the primary key. `'~'` sorts after every namespace. */
const sumUsageRows = {
  name: "sum_usage",
  text: `
with recursive ${USED_HOURS}
select extract(epoch from used.hour) * 1000 as hour_ms, s.*
  from (select hour from used where hour < (select until from bounds) limit $6::int) used
 cross join lateral (
   select ${USAGE_COUNTERS.map((name) => `sum(u.${name})::text as ${name}`).join(", ")}
     from usage_hours u
    where u.tenant_id = $1::int
      and u.hour = used.hour
      and u.namespace >= coalesce($2::text, '')
      and u.namespace <= coalesce($2::text, '~')) s
 order by used.hour`,
};

/** The counters are null in an hour in which only other namespaces were used. */
type SumRow = Readonly<Record<UsageCounter, string | null>> & { readonly hour_ms: number };

/**
 * Sums the first `limit` hours in which the tenant was used, after the hour that was read last. `next`: the next search begins
 * after this hour; undefined: there are no more hours.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumUsage(
  runner: Runner,
  query: Omit<UsageQuery, "behind"> & { readonly behindMs: number },
  latestMs?: number,
): Promise<{ readonly items: readonly UsageSum[]; readonly next: number | undefined }> {
  const { tenantId, namespace, behindMs, limit } = query;
  const rows = await runner.run<SumRow>(sumUsageRows, [
    ...[tenantId, namespace ?? null, ...rangeOf(query), behindMs, limit, latestMs ?? null],
  ]);
  const used = rows.filter(({ claims }) => claims !== null);
  return {
    items: used.map((row) => ({ hourMs: row.hour_ms, counters: countersBy((name) => Number(row[name])) })),
    next: rows.length === limit ? rows.at(-1)?.hour_ms : undefined,
  };
}
