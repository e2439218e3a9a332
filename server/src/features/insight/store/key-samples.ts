import type { Runner } from "../../../core/store/pool.ts";
import {
  bigintArray,
  byteaArray,
  float8Array,
  intArray,
  smallintArray,
  textArray,
} from "../../../core/store/sql-arrays.ts";
import type { UsedNamespace } from "../../../records/after-operation.ts";
import { equalKeys } from "../../../records/engine/record-sql.ts";
import type { ShapeCounts } from "../domain/key-quality.ts";
import { createLimit, type NamespaceSample, nameOf } from "./sample-limits.ts";

/** Observed first claims of a namespace. */
export interface ObservedNamespace extends UsedNamespace {
  /** The sample may be no larger than one fingerprint in 2^shift. */
  readonly shift: number;
  readonly shapes: ShapeCounts;
}

/** The first claim of a sampled fingerprint. Hashes are keyed with the pepper: 16 bytes. */
export interface SampledKey extends UsedNamespace {
  readonly fingerprintHash: Buffer;
  readonly keyHash: Buffer;
  /** Of the key without the counter at its end; undefined: it has none. */
  readonly stemHash: Buffer | undefined;
  readonly depth: number;
  /** In milliseconds since the Unix epoch on the database's clock. */
  readonly claimedAtMs: number;
}

/**
 * Adds shapes to those of the day, and raises the samples of namespaces that have keys. Rows are locked in the order of
 * their keys. What belongs to a removed tenant is dropped.
 */
const addShapes = {
  name: "add_key_shapes",
  text: `
with input as materialized (
  select i.*
    from unnest($1::int[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::int[])
      as i (tenant_id, namespace, shift, claims, without_fingerprint, times, attempts, random_uuids, prompt_uuids, keys)
   where exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
   order by i.tenant_id, i.namespace collate "C"
), shapes as (
  insert into insight_key_days as d (
    tenant_id, namespace, day, claims, without_fingerprint, times, attempts, random_uuids, prompt_uuids)
  select i.tenant_id, i.namespace, date_trunc('day', now() at time zone 'utc') at time zone 'utc',
         i.claims, i.without_fingerprint, i.times, i.attempts, i.random_uuids, i.prompt_uuids
    from input i
  on conflict (tenant_id, namespace, day) do update set
    claims = d.claims + excluded.claims,
    without_fingerprint = d.without_fingerprint + excluded.without_fingerprint,
    times = d.times + excluded.times,
    attempts = d.attempts + excluded.attempts,
    random_uuids = d.random_uuids + excluded.random_uuids,
    prompt_uuids = d.prompt_uuids + excluded.prompt_uuids
)
insert into insight_key_samples as n (tenant_id, namespace, shift, held)
select i.tenant_id, i.namespace, i.shift, i.keys
  from input i
 where i.keys > 0
on conflict (tenant_id, namespace) do update set
  shift = greatest(n.shift, excluded.shift),
  held = n.held + excluded.held
returning n.tenant_id as "tenantId", n.namespace, n.shift, n.held`,
};

/** Adds keys to samples that exist. A sampled key is stored once. */
const addSampledKeys = {
  name: "add_sampled_keys",
  text: `
insert into insight_sampled_keys (
  tenant_id, namespace, fingerprint_hash, key_hash, stem_hash, depth, claimed_at)
select k.tenant_id, k.namespace, k.fingerprint_hash, k.key_hash, k.stem_hash, k.depth,
       to_timestamp(k.claimed_ms / 1000)
  from unnest($1::int[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::smallint[], $7::float8[])
    as k (tenant_id, namespace, fingerprint_hash, key_hash, stem_hash, depth, claimed_ms)
 order by k.tenant_id, k.namespace collate "C", k.fingerprint_hash, k.key_hash
on conflict (tenant_id, namespace, fingerprint_hash, key_hash) do nothing`,
};

/**
 * Stores what was observed of distinct namespaces, and some of their sampled keys. Returns the samples of those that have
 * keys. A repeat after a lost reply adds no key, and counts shapes again.
 */
export async function addObservedKeys(
  transaction: Runner,
  namespaces: readonly ObservedNamespace[],
  keys: readonly SampledKey[],
): Promise<readonly NamespaceSample[]> {
  const keysOf = Map.groupBy(keys, nameOf);
  const shapes = (name: keyof ShapeCounts) => bigintArray(namespaces.map((each) => each.shapes[name]));
  const samples = await transaction.run<NamespaceSample>(
    addShapes,
    [
      intArray(namespaces.map(({ tenantId }) => tenantId)),
      textArray(namespaces.map(({ namespace }) => namespace)),
      smallintArray(namespaces.map(({ shift }) => shift)),
      ...[shapes("claims"), shapes("withoutFingerprint"), shapes("times"), shapes("attempts")],
      ...[shapes("randomUuids"), shapes("promptUuids")],
      intArray(namespaces.map((each) => keysOf.get(nameOf(each))?.length ?? 0)),
    ],
    namespaces.length,
  );
  const shifts = new Map(samples.map((sample) => [nameOf(sample), sample.shift]));
  const selected = keys.filter((key) => key.depth >= (shifts.get(nameOf(key)) ?? Number.POSITIVE_INFINITY));
  if (selected.length > 0) await insertKeys(transaction, selected);
  return samples;
}

async function insertKeys(transaction: Runner, keys: readonly SampledKey[]): Promise<void> {
  await transaction.run(
    addSampledKeys,
    [
      intArray(keys.map(({ tenantId }) => tenantId)),
      textArray(keys.map(({ namespace }) => namespace)),
      byteaArray(keys.map(({ fingerprintHash }) => fingerprintHash)),
      byteaArray(keys.map(({ keyHash }) => keyHash)),
      byteaArray(keys.map(({ stemHash }) => stemHash)),
      smallintArray(keys.map(({ depth }) => depth)),
      float8Array(keys.map(({ claimedAtMs }) => claimedAtMs)),
    ],
    keys.length,
  );
}

/** Halves a namespace's sample of fingerprints until it has at most `maxHeld` keys, and deletes the others. */
export const limitKeySample = createLimit("insight_key_samples", "insight_sampled_keys");

/** The join is written as records/README.md says. */
const removeSampledRows = {
  name: "remove_sampled_keys",
  text: `
with input as materialized (
  select i.tenant_id, i.namespace, i.key_hash
    from unnest($1::int[], $2::text[], $3::bytea[]) as i (tenant_id, namespace, key_hash)
   order by i.tenant_id, i.namespace collate "C", i.key_hash
)
delete from insight_sampled_keys k
 using input i
 where ${equalKeys("k", "i", "key_hash")}`,
};

/** Deletes the sampled claims of forgotten keys. */
export async function removeSampledKeys(
  runner: Runner,
  keys: readonly (UsedNamespace & Pick<SampledKey, "keyHash">)[],
): Promise<void> {
  await runner.run(
    removeSampledRows,
    [
      intArray(keys.map(({ tenantId }) => tenantId)),
      textArray(keys.map(({ namespace }) => namespace)),
      byteaArray(keys.map(({ keyHash }) => keyHash)),
    ],
    keys.length,
  );
}
