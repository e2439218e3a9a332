import type { Runner } from "../../database/pool.ts";
import { byteaArray, float8Array, intArray, smallintArray, textArray } from "../../database/sql-arrays.ts";
import type { UsedNamespace } from "../../records/after-operation.ts";
import { equalKeys } from "../../records/engine/record-sql.ts";
import { LAST_LATENESS_BUCKET, LATENESS_RATIO } from "./lateness.ts";

/** A claim that began an operation, of a sampled key, which may have ended before. */
export interface SampledClaim extends UsedNamespace {
  /** As SampledKey.keyHash. */
  readonly keyHash: Buffer;
  readonly depth: number;
  /** When it was granted, in milliseconds since the Unix epoch on the database's clock. */
  readonly atMs: number;
  /** The key retention in force. */
  readonly retentionS: number;
  /** The shift by which the claim was selected. */
  readonly shift: number;
}

/**
 * Counts the claims whose keys have a tombstone. A tombstone is counted once for each record of its key: its
 * end becomes infinite until the sweep deletes the next record. So a statement whose reply was lost can be
 * repeated. `bucket` is as `latenessBucket`. The join is written as records/README.md says.
 */
const countLateRows = {
  name: "count_late_repeats",
  text: `
with input as materialized (
  select i.tenant_id, i.namespace, i.key_hash, i.depth, to_timestamp(i.at_ms / 1000) as at, i.retention_s, i.shift
    from unnest($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::float8[], $6::int[], $7::smallint[])
      as i (tenant_id, namespace, key_hash, depth, at_ms, retention_s, shift)
   order by i.tenant_id, i.namespace collate "C", i.key_hash
), found as materialized (
  select i.tenant_id, i.namespace, i.key_hash, i.at, i.retention_s, greatest(n.shift, i.shift) as shift
    from input i
   cross join lateral (
         select s.shift
           from insight_sample_shifts s
          where s.tenant_id = i.tenant_id and s.namespace = i.namespace and s.kind = 'key'
          limit 1) n
   where i.depth >= greatest(n.shift, i.shift)
), returned as (
  update insight_sampled_keys t set ended_at = 'infinity', returns = t.returns + 1
    from found f
   where ${equalKeys("t", "f", "key_hash")}
     and t.kind = 'key'
     and t.ended_at <= f.at
  returning f.tenant_id, f.namespace, f.at, f.retention_s, f.shift, t.returns,
            extract(epoch from f.at - t.first_claimed_at) as lateness_s
), counted as (
  select tenant_id, namespace, retention_s, shift,
         date_trunc('hour', at at time zone 'utc') at time zone 'utc' as hour,
         least(${LAST_LATENESS_BUCKET},
               ceil(ln(greatest(lateness_s, 1)::float8) / ln(${LATENESS_RATIO}::float8)))::smallint as bucket,
         count(*) as repeats, sum(2 * returns - 1) as squares
    from returned
   group by 1, 2, 3, 4, 5, 6
), stored as (
  insert into insight_late_hours as u (tenant_id, namespace, hour, retention_s, shift, buckets, repeats, squares)
  select tenant_id, namespace, hour, retention_s, shift,
         array_agg(bucket), array_agg(repeats), array_agg(squares)
    from counted
   group by tenant_id, namespace, hour, retention_s, shift
   order by tenant_id, namespace collate "C", hour, retention_s, shift
  on conflict (tenant_id, namespace, hour, retention_s, shift) do update set
    (buckets, repeats, squares) = (${mergedBuckets("repeats", "squares")})
)
select coalesce(sum(repeats), 0)::int as late from counted`,
};

/**
 * Returns a query that adds the sparse histogram of `excluded` to that of the row `u`: its buckets, then each
 * of its counts.
 */
export function mergedBuckets(...counts: readonly string[]): string {
  const sums = counts.map((count) => `sum(${count})::bigint as ${count}`).join(", ");
  const arrays = counts.map((count) => `coalesce(array_agg(${count} order by bucket), '{}')`).join(", ");
  const unnested = (row: string) =>
    `select * from unnest(${["buckets", ...counts].map((name) => `${row}.${name}`).join(", ")}) as e (bucket, ${counts.join(", ")})`;
  return `
      select coalesce(array_agg(bucket order by bucket), '{}'), ${arrays}
        from (select bucket, ${sums}
                from (${unnested("u")} union all ${unnested("excluded")}) both_rows
               group by bucket) merged`;
}

/** Counts those of the claims that are late repeats. May be repeated. */
export async function countLateRepeats(runner: Runner, claims: readonly SampledClaim[]): Promise<void> {
  await runner.run(
    countLateRows,
    [
      intArray(claims.map(({ tenantId }) => tenantId)),
      textArray(claims.map(({ namespace }) => namespace)),
      byteaArray(claims.map(({ keyHash }) => keyHash)),
      smallintArray(claims.map(({ depth }) => depth)),
      float8Array(claims.map(({ atMs }) => atMs)),
      intArray(claims.map(({ retentionS }) => retentionS)),
      smallintArray(claims.map(({ shift }) => shift)),
    ],
    claims.length,
  );
}
