import type { Runner } from "../database/pool.ts";
import { fromRow, type RowOf } from "../database/rows.ts";
import type { ClaimsOfDay, LateOfDay, Observations } from "./domain/observations.ts";

/**
 * Sums the hours of each namespace by day and retention. `$3` is the number of days. There is no join of sums with sums: with wrong
 * statistics its inner side would be computed again for each day.
 */
const readClaimDays = {
  name: "read_claim_days",
  text: `
with hours as materialized (
  select h.namespace, date_trunc('day', h.hour at time zone 'utc') as day, h.retention_s, h.claims, h.first_claims,
         h.buckets, h.repeats
    from insight_hours h
   where h.tenant_id = $1::int
     and h.namespace = any($2::text[])
     and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
), counts as (
  select namespace, day, retention_s, claims, first_claims, null::smallint as bucket, null::bigint as repeats
    from hours
   union all
  select h.namespace, h.day, h.retention_s, 0, 0, e.bucket, e.repeats
    from hours h, unnest(h.buckets, h.repeats) as e (bucket, repeats)
), sums as (
  select namespace, day, retention_s, bucket, sum(claims) as claims, sum(first_claims) as first_claims,
         sum(repeats) as repeats
    from counts
   group by namespace, day, retention_s, bucket
)
select namespace, extract(epoch from day) * 1000 as "dayMs", retention_s as "retentionS", sum(claims)::numeric as claims,
       sum(first_claims)::numeric as "firstClaims",
       coalesce(json_agg(json_build_object('bucket', bucket, 'repeats', repeats) order by bucket)
                  filter (where bucket is not null), '[]') as repeats
  from sums
 group by namespace, day, retention_s
 order by namespace, day, retention_s`,
};

const readLateDays = {
  name: "read_late_days",
  text: `
select namespace, extract(epoch from day) * 1000 as "dayMs", retention_s as "retentionS", shift,
       json_agg(json_build_object('bucket', bucket, 'repeats', repeats, 'squares', squares) order by bucket) as repeats
  from (select h.namespace, date_trunc('day', h.hour at time zone 'utc') as day, h.retention_s, h.shift, e.bucket,
               sum(e.repeats) as repeats, sum(e.squares) as squares
          from insight_late_hours h, unnest(h.buckets, h.repeats, h.squares) as e (bucket, repeats, squares)
         where h.tenant_id = $1::int
           and h.namespace = any($2::text[])
           and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
         group by 1, 2, 3, 4, 5) sums
 group by namespace, day, retention_s, shift
 order by namespace, day, retention_s, shift`,
};

/** The sample of each namespace, and when counting began. */
const readSamples = {
  name: "read_samples",
  text: `
select asked.namespace,
       extract(epoch from now()) * 1000 as "nowMs",
       (select extract(epoch from h.hour) * 1000
          from insight_hours h
         where h.tenant_id = $1::int
           and h.namespace = asked.namespace
           and h.hour >= (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc'
         order by h.hour
         limit 1) as "sinceMs",
       (select json_build_array(n.shift, extract(epoch from n.since) * 1000)
          from insight_sample_shifts n
         where n.tenant_id = $1::int
           and n.namespace = asked.namespace
           and n.kind = 'key') as sample
  from unnest($2::text[]) as asked (namespace)`,
};

/**
 * The mean size of some records of a namespace, read in the order of the primary key: without an order, a namespace that has none
 * would cost a scan of the whole table. A statement for each namespace, because Citus joins records with nothing else.
 */
const readMeanSize = {
  name: "read_mean_size",
  text: `
select avg(s.bytes)::numeric as bytes
  from (select pg_column_size(r.*) as bytes
          from records r
         where r.tenant_id = $1::int
           and r.namespace = $2::text
         order by r.key
         limit 200) s`,
};

/** Long enough for a quarter's habits; short enough to follow a change of the callers. */
const MIN_DAYS = 90;
/** Hours are kept for as long. */
const MAX_DAYS = 400;
const DAY_S = 86_400;

/** What was seen of a namespace in the last 90 days, or in the last retention period if that is longer. */
export interface StoredObservations extends Observations {
  /** Mean size of a record's row, of some of the namespace's records; undefined: it has none. */
  readonly meanRecordBytes: number | undefined;
}

type Seen = Pick<StoredObservations, "nowMs" | "sinceMs">;
type InNamespace<Row> = Row & { readonly namespace: string };
type SampleRow = InNamespace<
  RowOf<Seen> & { readonly sample: readonly [shift: number, sinceMs: number] | null }
>;

/**
 * Returns what was seen of each of some namespaces, by name.
 *
 * @param retentions the retention in force of each, in seconds.
 */
export async function readObservations(
  runner: Runner,
  tenantId: number,
  retentions: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, StoredObservations>> {
  const observed = new Map<string, StoredObservations>();
  const daysOf = (retentionS: number) =>
    Math.min(MAX_DAYS, Math.max(MIN_DAYS, Math.ceil(retentionS / DAY_S)));
  for (const [days, of] of Map.groupBy(retentions, ([, retentionS]) => daysOf(retentionS)))
    for (const [namespace, observations] of await readDays(runner, [
      tenantId,
      of.map(([name]) => name),
      days,
    ]))
      observed.set(namespace, observations);
  return observed;
}

async function readDays(
  runner: Runner,
  parameters: readonly [tenantId: number, namespaces: readonly string[], days: number],
): Promise<ReadonlyMap<string, StoredObservations>> {
  const samples = await runner.run<SampleRow>(readSamples, parameters);
  const claimDays = await runner.run<InNamespace<ClaimsOfDay>>(readClaimDays, parameters);
  const lateDays = await runner.run<InNamespace<LateOfDay>>(readLateDays, parameters);
  const claims = Map.groupBy(claimDays, (day) => day.namespace);
  const late = Map.groupBy(lateDays, (day) => day.namespace);
  const observed = new Map<string, StoredObservations>();
  for (const { namespace, sample, ...seen } of samples) {
    const [size] = await runner.run<{ bytes: number | null }>(readMeanSize, [parameters[0], namespace]);
    const [shift, sampledSinceMs] = sample ?? [0, undefined];
    observed.set(namespace, {
      ...fromRow<Seen>(seen),
      meanRecordBytes: size?.bytes ?? undefined,
      sampledSinceMs,
      shift,
      claims: claims.get(namespace) ?? [],
      late: late.get(namespace) ?? [],
    });
  }
  return observed;
}
