import { latenessBucket } from "../admin/usage/lateness.ts";
import type { Runner } from "../database/pool.ts";
import { fromRow, type RowOf } from "../database/rows.ts";
import { type KeyObservations, PROMPT_MS } from "./domain/key-quality.ts";

/** Sums what was counted of a namespace's claims. `$3` is the number of days, `$4` the last bucket of prompt repeats. */
const readKeyCounts = {
  name: "read_key_counts",
  text: `
with window_start as (
  select (date_trunc('day', now() at time zone 'utc') - $3::int * interval '1 day') at time zone 'utc' as since
), claims as (
  select coalesce(sum(h.claims), 0)::numeric as claims, extract(epoch from min(h.hour)) * 1000 as since_ms
    from insight_hours h, window_start w
   where h.tenant_id = $1::int and h.namespace = $2::text and h.hour >= w.since
), repeats as (
  select coalesce(sum(e.repeats), 0)::numeric as repeats,
         coalesce(sum(e.repeats) filter (where e.bucket <= $4::int), 0)::numeric as prompt_repeats
    from insight_hours h, window_start w, unnest(h.buckets, h.repeats) as e (bucket, repeats)
   where h.tenant_id = $1::int and h.namespace = $2::text and h.hour >= w.since
), late as (
  select coalesce(sum(e.repeats), 0)::numeric as seen,
         coalesce(sum(e.repeats * 2.0 ^ h.shift), 0)::numeric as sum,
         coalesce(sum(e.squares * 4.0 ^ h.shift), 0)::numeric as squares,
         coalesce(max(2.0 ^ h.shift), 0)::numeric as largest,
         count(distinct date_trunc('day', h.hour at time zone 'utc'))::int as days
    from insight_late_hours h, window_start w, unnest(h.repeats, h.squares) as e (repeats, squares)
   where h.tenant_id = $1::int and h.namespace = $2::text and h.hour >= w.since
), shapes as (
  select coalesce(sum(d.claims), 0)::numeric as claims,
         coalesce(sum(d.without_fingerprint), 0)::numeric as "withoutFingerprint",
         coalesce(sum(d.times), 0)::numeric as times,
         coalesce(sum(d.attempts), 0)::numeric as attempts,
         coalesce(sum(d.random_uuids), 0)::numeric as "randomUuids",
         coalesce(sum(d.prompt_uuids), 0)::numeric as "promptUuids"
    from insight_key_days d, window_start w
   where d.tenant_id = $1::int and d.namespace = $2::text and d.day >= w.since
)
select c.claims, c.since_ms as "sinceMs", r.repeats, r.prompt_repeats as "promptRepeats", row_to_json(l) as late, row_to_json(s) as shapes
  from claims c, repeats r, late l, shapes s`,
};

/**
 * Looks, for each sampled claim, at the next claim of its fingerprint. A claim under a key that differs from the one before by
 * the counter at its end has the same stem.
 */
const readFingerprintGaps = {
  name: "read_fingerprint_gaps",
  text: `
with sampled as materialized (
  select k.fingerprint_hash, k.stem_hash,
         lead(k.stem_hash) over next_claim as next_stem,
         extract(epoch from lead(k.first_claimed_at) over next_claim - k.first_claimed_at) as gap_s,
         extract(epoch from now() - k.first_claimed_at) as observed_s
    from insight_sampled_keys k
    join insight_sample_shifts n on n.tenant_id = k.tenant_id and n.namespace = k.namespace and n.kind = k.kind
   where k.tenant_id = $1::int
     and k.namespace = $2::text
     and k.kind = 'fingerprint'
     and k.depth >= n.shift
  window next_claim as (partition by k.fingerprint_hash order by k.first_claimed_at, k.key_hash)
), gaps as (
  select fingerprint_hash, gap_s, coalesce(stem_hash = next_stem, false) as is_counted,
         coalesce(gap_s, observed_s) as until_s
    from sampled
)
select count(*)::numeric as claims,
       count(distinct fingerprint_hash) filter (where gap_s <= $3::float8 and not is_counted)::numeric as prompt,
       count(distinct fingerprint_hash) filter (where gap_s <= $3::float8 and is_counted)::numeric as counted,
       count(distinct fingerprint_hash) filter (where gap_s > 3600 and gap_s <= 86400)::numeric as later,
       (coalesce(sum(least(until_s, $3::float8)), 0) / 3600)::numeric as "promptHours",
       coalesce(sum(greatest(least(until_s, 86400) - 3600, 0)), 0) / 3600 as "laterHours"
  from gaps`,
};

/** A month: older claims may be of callers that were fixed. */
const DAYS = 30;

interface Counts extends Omit<KeyObservations, "fingerprints"> {
  /** The first hour that was counted, in milliseconds since the Unix epoch; undefined: no claim was. */
  readonly sinceMs: number | undefined;
}

/** Returns what was seen of a namespace's keys in the last 30 days, and since when. */
export async function readKeyObservations(runner: Runner, tenantId: number, namespace: string) {
  const [counts] = await runner.run<RowOf<Counts>>(readKeyCounts, [
    ...[tenantId, namespace, DAYS, latenessBucket(PROMPT_MS)],
  ]);
  const [fingerprints] = await runner.run<KeyObservations["fingerprints"]>(readFingerprintGaps, [
    ...[tenantId, namespace, PROMPT_MS / 1000],
  ]);
  if (counts === undefined || fingerprints === undefined) throw new Error("an aggregate returned no row");
  return { ...fromRow<Counts>(counts), fingerprints };
}
