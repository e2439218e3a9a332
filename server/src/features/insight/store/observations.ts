import type { Runner } from "../../../core/store/pool.ts";
import { fromRow, type RowOf } from "../../../core/store/rows.ts";
import type { ClaimsOfDay, LateOfDay, Observations } from "../domain/observations.ts";

/** Sums a namespace's hours by day and retention. `$3` is the number of days. */
const readClaimDays = {
  name: "read_claim_days",
  text: `
with hours as materialized (
  select date_trunc('day', h.hour at time zone 'utc') as day, h.retention_s, h.claims, h.first_claims,
         h.buckets, h.repeats
    from insight_hours h
   where h.tenant_id = $1::int
     and h.namespace = $2::text
     and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
), totals as (
  select day, retention_s, sum(claims)::float8 as claims, sum(first_claims)::float8 as first_claims
    from hours
   group by day, retention_s
), histograms as (
  select day, retention_s, json_agg(json_build_object('bucket', bucket, 'repeats', repeats) order by bucket) as repeats
    from (select h.day, h.retention_s, e.bucket, sum(e.repeats) as repeats
            from hours h, unnest(h.buckets, h.repeats) as e (bucket, repeats)
           group by h.day, h.retention_s, e.bucket) sums
   group by day, retention_s
)
select date_part('epoch', t.day) * 1000 as "dayMs", t.retention_s as "retentionS", t.claims, t.first_claims as "firstClaims",
       coalesce(g.repeats, '[]') as repeats
  from totals t
  left join histograms g on g.day = t.day and g.retention_s = t.retention_s
 order by t.day, t.retention_s`,
};

const readLateDays = {
  name: "read_late_days",
  text: `
select date_part('epoch', day) * 1000 as "dayMs", retention_s as "retentionS", shift,
       json_agg(json_build_object('bucket', bucket, 'repeats', repeats, 'squares', squares) order by bucket) as repeats
  from (select date_trunc('day', h.hour at time zone 'utc') as day, h.retention_s, h.shift, e.bucket,
               sum(e.repeats) as repeats, sum(e.squares) as squares
          from insight_late_hours h, unnest(h.buckets, h.repeats, h.squares) as e (bucket, repeats, squares)
         where h.tenant_id = $1::int
           and h.namespace = $2::text
           and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
         group by 1, 2, 3, 4) sums
 group by day, retention_s, shift
 order by day, retention_s, shift`,
};

/** The sample, when counting began, and the mean size of some records. */
const readSample = {
  name: "read_sample",
  text: `
select date_part('epoch', now()) * 1000 as "nowMs",
       (select date_part('epoch', h.hour) * 1000
          from insight_hours h
         where h.tenant_id = $1::int
           and h.namespace = $2::text
           and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
         order by h.hour
         limit 1) as "sinceMs",
       (select json_build_array(n.shift, date_part('epoch', n.since) * 1000)
          from insight_samples n
         where n.tenant_id = $1::int
           and n.namespace = $2::text) as sample,
       (select avg(s.bytes)::float8
          from (select pg_column_size(r.*) as bytes
                  from records r
                 where r.tenant_id = $1::int
                   and r.namespace = $2::text
                 limit 200) s) as "meanRecordBytes"`,
};

/** Long enough for a quarter's habits; short enough to follow a change of the callers. */
const DAYS = 90;

/** What was seen of a namespace in the last 90 days. */
export interface StoredObservations extends Observations {
  /** Mean size of a record's row, of some of the namespace's records; undefined: it has none. */
  readonly meanRecordBytes: number | undefined;
}

type Seen = Pick<StoredObservations, "nowMs" | "sinceMs" | "meanRecordBytes">;
type SampleRow = RowOf<Seen> & { readonly sample: readonly [shift: number, sinceMs: number] | null };

/** Returns what was seen of a namespace. */
export async function readObservations(
  runner: Runner,
  tenantId: number,
  namespace: string,
): Promise<StoredObservations> {
  const parameters = [tenantId, namespace, DAYS];
  const [row] = await runner.run<SampleRow>(readSample, parameters);
  if (row === undefined) throw new Error("read_sample returned no row");
  const claims = await runner.run<ClaimsOfDay>(readClaimDays, parameters);
  const late = await runner.run<LateOfDay>(readLateDays, parameters);
  const { sample, ...seen } = row;
  const [shift, sampledSinceMs] = sample ?? [0, undefined];
  return { ...fromRow<Seen>(seen), sampledSinceMs, shift, claims, late };
}
