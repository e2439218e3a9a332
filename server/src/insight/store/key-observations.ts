import { latenessBucket } from "../../admin/usage/lateness.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import type { UsedNamespace } from "../../records/after-operation.ts";
import { STATE } from "../../records/engine/record-row.ts";
import { type KeyObservations, PROMPT_MS } from "../domain/key-quality.ts";

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

/** Fingerprints that came under another key soon after, the newest first. `$4`: whether by a counter. */
const readPromptFingerprints = {
  name: "read_prompt_fingerprints",
  text: `
select g.fingerprint_hash
  from (select k.fingerprint_hash, k.first_claimed_at, k.stem_hash,
               lag(k.stem_hash) over earlier as earlier_stem,
               extract(epoch from k.first_claimed_at - lag(k.first_claimed_at) over earlier) as gap_s
          from insight_sampled_keys k
         where k.tenant_id = $1::int
           and k.namespace = $2::text
           and k.kind = 'fingerprint'
        window earlier as (partition by k.fingerprint_hash order by k.first_claimed_at, k.key_hash)) g
 where g.gap_s <= $3::float8
   and coalesce(g.stem_hash = g.earlier_stem, false) = $4::boolean
 order by g.first_claimed_at desc
 limit $5::int`,
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

/** Returns the hashes of sampled fingerprints that came under another key soon, at most `limit`. */
export async function findPromptFingerprints(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  { isCounted, limit }: { readonly isCounted: boolean; readonly limit: number },
): Promise<readonly Buffer[]> {
  const rows = await runner.run<{ fingerprint_hash: Buffer }>(readPromptFingerprints, [
    ...[tenantId, namespace, PROMPT_MS / 1000, isCounted, limit],
  ]);
  return rows.map(({ fingerprint_hash: hash }) => hash);
}

/** Finds namespaces by one search of the primary key for each, however many days it has. */
const listObserved = {
  name: "list_observed_namespaces",
  text: `
with recursive observed (name) as (
  (select d.namespace
     from insight_key_days d
    where d.tenant_id = $1::int
      and d.namespace > $2::text
    order by d.tenant_id, d.namespace
    limit 1)
  union all
  select (select d.namespace
            from insight_key_days d
           where d.tenant_id = $1::int
             and d.namespace > observed.name
           order by d.tenant_id, d.namespace
           limit 1)
    from observed
   where observed.name is not null
)
select name from observed where name is not null limit $3::int`,
};

/** Returns at most `limit` of a tenant's namespaces whose keys were observed, by name, after `afterName`. */
export async function findObservedNamespaces(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
): Promise<readonly string[]> {
  const rows = await runner.run<{ name: string }>(listObserved, [tenantId, afterName, limit]);
  return rows.map(({ name }) => name);
}

const readReturnedKeys = {
  name: "read_returned_keys",
  text: `
select t.key_hash
  from insight_sampled_keys t
 where t.tenant_id = $1::int
   and t.namespace = $2::text
   and t.kind = 'key'
   and t.ended_at = 'infinity'
 limit $3::int`,
};

/** Returns the hashes of sampled keys that came back after the end of their record and have a new one, at most `limit`. */
export async function findReturnedKeys(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  limit: number,
): Promise<readonly Buffer[]> {
  const rows = await runner.run<{ key_hash: Buffer }>(readReturnedKeys, [tenantId, namespace, limit]);
  return rows.map(({ key_hash: hash }) => hash);
}

/** A record that may be an example. */
export interface ExampleRecord {
  readonly key: string;
  readonly fingerprint: Uint8Array | undefined;
  /** In milliseconds since the Unix epoch. */
  readonly firstClaimedAtMs: number;
}

/**
 * Returns some of a namespace's records. A forgotten row, or one whose retention has ended, is not a record.
 */
const readExampleRecords = {
  name: "read_example_records",
  text: `
select e.key, e.fingerprint, extract(epoch from e.first_claimed_at) * 1000 as "firstClaimedAtMs"
  from (select r.key, r.fingerprint, r.first_claimed_at, r.state <> ${STATE.forgotten} and r.expires_at > now() as is_live
          from records r
         where r.tenant_id = $1::int
           and r.namespace = $2::text
         order by r.tenant_id, r.namespace, r.key
         limit $3::int) e
 where e.is_live`,
};

/** Returns the live ones among the first `maxRows` rows of a namespace, by key. */
export async function readExamples(
  runner: Runner,
  { tenantId, namespace }: UsedNamespace,
  maxRows: number,
): Promise<readonly ExampleRecord[]> {
  const rows = await runner.run<RowOf<ExampleRecord>>(readExampleRecords, [tenantId, namespace, maxRows]);
  return rows.map((row) => fromRow<ExampleRecord>(row));
}
