import type { Runner } from "../database/pool.ts";
import {
  bigintArray,
  byteaArray,
  float8Array,
  intArray,
  smallintArray,
  textArray,
} from "../database/sql-arrays.ts";
import type { UsedNamespace } from "../records/after-operation.ts";
import { equalKeys } from "../records/engine/record-sql.ts";
import type { ShapeCounts } from "./domain/key-quality.ts";
import type { Sample, SampleId } from "./samples.ts";

/** A key of a sample. Hashes are keyed with the pepper: 16 bytes. Instants are milliseconds since the Unix epoch. */
export interface SampledKey extends SampleId {
  /** The sample may be no larger than one in 2^shift. */
  readonly shift: number;
  readonly depth: number;
  readonly keyHash: Buffer;
  /** Empty in a sample of keys. */
  readonly fingerprintHash: Buffer;
  /** In a sample of fingerprints: of the key without the counter at its end; undefined: it has none. */
  readonly stemHash: Buffer | undefined;
  readonly firstClaimedAtMs: number;
  /** In a sample of keys: when the record ended that the sweep deleted. */
  readonly endedAtMs: number | undefined;
}

/** Shapes of observed claims of a namespace. */
export interface ObservedShapes extends UsedNamespace {
  readonly shapes: ShapeCounts;
}

/**
 * A tombstone is kept for three times as long as its record lasted: repeats are seen up to four times the
 * retention. At least a week, for people who return after a weekend.
 */
const TOMBSTONE_KEPT_FOR = `least(interval '400 days', greatest(interval '7 days', 3 * (i.ended_at - i.first_claimed_at)))`;
/** A week, which has a weekend, and the day within which a fingerprint's next claim is searched for. */
const CLAIM_KEPT_FOR = `interval '8 days'`;

const OF_EXISTING_TENANT = "exists (select 1 from tenants t where t.id = i.tenant_id offset 0)";

/**
 * Adds keys to their samples, and returns these, and adds shapes to those of the day. A key that ended before keeps the time of
 * its first claim. Rows are locked in the order of their keys. What belongs to a removed tenant is dropped, and keys that a
 * smaller sample does not have.
 */
const addKeys = {
  name: "add_sampled_keys",
  text: `
with input as materialized (
  select i.tenant_id, i.namespace, i.kind, i.shift, i.depth, i.key_hash, i.fingerprint_hash, i.stem_hash,
         to_timestamp(i.claimed_ms / 1000) as first_claimed_at, to_timestamp(i.ended_ms / 1000) as ended_at
    from unnest($1::int[], $2::text[], $3::text[], $4::smallint[], $5::smallint[], $6::bytea[], $7::bytea[], $8::bytea[],
                $9::float8[], $10::float8[])
      as i (tenant_id, namespace, kind, shift, depth, key_hash, fingerprint_hash, stem_hash, claimed_ms, ended_ms)
   where ${OF_EXISTING_TENANT}
), samples as (
  insert into insight_sample_shifts as n (tenant_id, namespace, kind, shift, held, since)
  select i.tenant_id, i.namespace, i.kind, max(i.shift), count(*), min(coalesce(i.ended_at, i.first_claimed_at))
    from input i
   group by i.tenant_id, i.namespace, i.kind
   order by i.tenant_id, i.namespace collate "C", i.kind collate "C"
  on conflict (tenant_id, namespace, kind) do update set
    shift = greatest(n.shift, excluded.shift),
    held = n.held + excluded.held,
    changed_at = case when n.shift < excluded.shift then now() else n.changed_at end
  returning n.tenant_id, n.namespace, n.kind, n.shift, n.held
), added as (
  insert into insight_sampled_keys as k (
    tenant_id, namespace, kind, key_hash, fingerprint_hash, stem_hash, depth, first_claimed_at, ended_at, keep_until)
  select i.tenant_id, i.namespace, i.kind, i.key_hash, i.fingerprint_hash, i.stem_hash, i.depth, i.first_claimed_at, i.ended_at,
         coalesce(i.ended_at + ${TOMBSTONE_KEPT_FOR}, i.first_claimed_at + ${CLAIM_KEPT_FOR})
    from input i
   where i.depth >= coalesce((
           select n.shift
             from insight_sample_shifts n
            where n.tenant_id = i.tenant_id and n.namespace = i.namespace and n.kind = i.kind
            limit 1), 0)
   order by i.tenant_id, i.namespace collate "C", i.kind collate "C", i.key_hash, i.fingerprint_hash
  on conflict (tenant_id, namespace, kind, key_hash, fingerprint_hash) do update set
    ended_at = excluded.ended_at,
    keep_until = greatest(k.keep_until, excluded.keep_until)
   where excluded.ended_at is not null
), shapes as (
  insert into insight_key_days as d (
    tenant_id, namespace, day, claims, without_fingerprint, times, attempts, random_uuids, prompt_uuids)
  select i.tenant_id, i.namespace, date_trunc('day', now() at time zone 'utc') at time zone 'utc',
         i.claims, i.without_fingerprint, i.times, i.attempts, i.random_uuids, i.prompt_uuids
    from unnest($11::int[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[],
                $18::bigint[])
      as i (tenant_id, namespace, claims, without_fingerprint, times, attempts, random_uuids, prompt_uuids)
   where ${OF_EXISTING_TENANT}
   order by i.tenant_id, i.namespace collate "C"
  on conflict (tenant_id, namespace, day) do update set
    claims = d.claims + excluded.claims,
    without_fingerprint = d.without_fingerprint + excluded.without_fingerprint,
    times = d.times + excluded.times,
    attempts = d.attempts + excluded.attempts,
    random_uuids = d.random_uuids + excluded.random_uuids,
    prompt_uuids = d.prompt_uuids + excluded.prompt_uuids
)
select tenant_id as "tenantId", namespace, kind, shift, held from samples`,
};

/**
 * Stores distinct keys of samples, and shapes of distinct namespaces. Returns the samples of the keys. A repeat after a lost
 * reply adds no key, and counts shapes again.
 */
export async function addSampledKeys(
  runner: Runner,
  keys: readonly SampledKey[],
  observed: readonly ObservedShapes[],
): Promise<readonly Sample[]> {
  const shapes = (name: keyof ShapeCounts) => bigintArray(observed.map((each) => each.shapes[name]));
  return runner.run<Sample>(
    addKeys,
    [
      intArray(keys.map(({ tenantId }) => tenantId)),
      textArray(keys.map(({ namespace }) => namespace)),
      textArray(keys.map(({ kind }) => kind)),
      smallintArray(keys.map(({ shift }) => shift)),
      smallintArray(keys.map(({ depth }) => depth)),
      byteaArray(keys.map(({ keyHash }) => keyHash)),
      byteaArray(keys.map(({ fingerprintHash }) => fingerprintHash)),
      byteaArray(keys.map(({ stemHash }) => stemHash)),
      float8Array(keys.map(({ firstClaimedAtMs }) => firstClaimedAtMs)),
      float8Array(keys.map(({ endedAtMs }) => endedAtMs)),
      intArray(observed.map(({ tenantId }) => tenantId)),
      textArray(observed.map(({ namespace }) => namespace)),
      ...[shapes("claims"), shapes("withoutFingerprint"), shapes("times"), shapes("attempts")],
      ...[shapes("randomUuids"), shapes("promptUuids")],
    ],
    keys.length + observed.length,
  );
}

/** The join is written as records/README.md says. */
const removeKeys = {
  name: "remove_sampled_keys",
  text: `
with input as materialized (
  select i.tenant_id, i.namespace, k.kind, i.key_hash
    from unnest($1::int[], $2::text[], $3::bytea[]) as i (tenant_id, namespace, key_hash),
         (values ('fingerprint'), ('key')) as k (kind)
   order by i.tenant_id, i.namespace collate "C", k.kind collate "C", i.key_hash
)
delete from insight_sampled_keys k
 using input i
 where ${equalKeys("k", "i", "key_hash")}
   and k.kind = i.kind`,
};

/** Deletes forgotten keys from their namespaces' samples. */
export async function removeSampledKeys(
  runner: Runner,
  keys: readonly (UsedNamespace & Pick<SampledKey, "keyHash">)[],
): Promise<void> {
  await runner.run(
    removeKeys,
    [
      intArray(keys.map(({ tenantId }) => tenantId)),
      textArray(keys.map(({ namespace }) => namespace)),
      byteaArray(keys.map(({ keyHash }) => keyHash)),
    ],
    keys.length,
  );
}
