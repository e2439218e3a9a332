import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { bigintArray, intArray, textArray } from "../../database/sql-arrays.ts";
import type { UsedNamespace } from "../../records/after-operation.ts";
import { mergedBuckets } from "./late-repeats.ts";
import type { LatenessCounts } from "./lateness.ts";
import { USAGE_COUNTERS, type UsageCounters } from "./usage.ts";

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

/** Returns SQL for the hour that contains an instant, UTC. */
export function hourOf(instant: string): string {
  return `date_trunc('hour', ${instant} at time zone 'utc') at time zone 'utc'`;
}
