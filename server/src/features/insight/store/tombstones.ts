import type { Runner } from "../../../core/store/pool.ts";
import {
  booleanArray,
  byteaArray,
  float8Array,
  intArray,
  smallintArray,
  textArray,
} from "../../../core/store/sql-arrays.ts";
import type { UsedNamespace } from "../../../records/after-operation.ts";
import { equalKeys } from "../../../records/engine/record-sql.ts";
import { createLimit, type NamespaceSample } from "./sample-limits.ts";

/** A sampled key whose record the sweep deleted. Instants are milliseconds since the Unix epoch. */
export interface EndedKey extends UsedNamespace {
  /** Of the key, keyed with the pepper: 16 bytes. */
  readonly hash: Buffer;
  readonly depth: number;
  /** The sample of the key's namespace may be no larger than one key in 2^shift. */
  readonly shift: number;
  readonly firstClaimedAtMs: number;
  readonly endedAtMs: number;
  /** The record was forgotten: a later claim is not a duplicate, and nothing of the key may be kept. */
  readonly forgotten: boolean;
}

/**
 * A tombstone is kept for three times as long as its record lasted: repeats are seen up to four times the
 * retention. At least a week, for people who return after a weekend.
 */
const KEPT_FOR = `least(interval '400 days', greatest(interval '7 days', 3 * (i.ended_at - i.first_claimed_at)))`;

/**
 * Adds tombstones of distinct keys to the samples of their namespaces, and returns these samples. A key that
 * ended before keeps the time of its first claim. Rows are locked in the order of their keys. Keys of a
 * removed tenant are dropped.
 */
const addTombstoneRows = {
  name: "add_tombstones",
  text: `
with input as materialized (
  select i.tenant_id, i.namespace, i.hash, i.depth, i.forgotten, i.shift,
         to_timestamp(i.first_ms / 1000) as first_claimed_at, to_timestamp(i.ended_ms / 1000) as ended_at
    from unnest($1::int[], $2::text[], $3::bytea[], $4::smallint[], $5::float8[], $6::float8[], $7::boolean[],
                $8::smallint[])
      as i (tenant_id, namespace, hash, depth, first_ms, ended_ms, forgotten, shift)
   order by i.tenant_id, i.namespace collate "C", i.hash
), samples as (
  insert into insight_samples as n (tenant_id, namespace, shift, held, since)
  select i.tenant_id, i.namespace, max(i.shift), count(*), min(i.ended_at)
    from input i
   where not i.forgotten
     and exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
   group by i.tenant_id, i.namespace
   order by i.tenant_id, i.namespace collate "C"
  on conflict (tenant_id, namespace) do update set
    shift = greatest(n.shift, excluded.shift),
    held = n.held + excluded.held,
    changed_at = case when n.shift < excluded.shift then now() else n.changed_at end
  returning n.tenant_id, n.namespace, n.shift, n.held
), added as (
  insert into insight_tombstones as t (
    tenant_id, namespace, hash, depth, first_claimed_at, ended_at, keep_until)
  select i.tenant_id, i.namespace, i.hash, i.depth, i.first_claimed_at, i.ended_at, i.ended_at + ${KEPT_FOR}
    from input i
    join samples n on n.tenant_id = i.tenant_id and n.namespace = i.namespace
   where not i.forgotten
     and i.depth >= n.shift
   order by i.tenant_id, i.namespace collate "C", i.hash
  on conflict (tenant_id, namespace, hash) do update set
    ended_at = excluded.ended_at,
    keep_until = greatest(t.keep_until, excluded.keep_until)
), removed as (
  delete from insight_tombstones t
   using input i
   where i.forgotten
     and ${equalKeys("t", "i", "hash")}
)
select tenant_id as "tenantId", namespace, shift, held from samples`,
};

/** Stores tombstones of distinct keys; may be repeated. Returns the samples of their namespaces. */
export async function addTombstones(
  runner: Runner,
  keys: readonly EndedKey[],
): Promise<readonly NamespaceSample[]> {
  return runner.run<NamespaceSample>(
    addTombstoneRows,
    [
      intArray(keys.map(({ tenantId }) => tenantId)),
      textArray(keys.map(({ namespace }) => namespace)),
      byteaArray(keys.map(({ hash }) => hash)),
      smallintArray(keys.map(({ depth }) => depth)),
      float8Array(keys.map(({ firstClaimedAtMs }) => firstClaimedAtMs)),
      float8Array(keys.map(({ endedAtMs }) => endedAtMs)),
      booleanArray(keys.map(({ forgotten }) => forgotten)),
      smallintArray(keys.map(({ shift }) => shift)),
    ],
    keys.length,
  );
}

/** Halves a namespace's sample of tombstones until it has at most `maxHeld`, and deletes the others. */
export const limitSample = createLimit("insight_samples", "insight_tombstones");

const readChangedSamples = {
  name: "read_changed_samples",
  text: `
select n.tenant_id as "tenantId", n.namespace, n.shift, n.held, extract(epoch from n.changed_at) * 1000 as "changedAtMs"
  from insight_samples n
 where (n.changed_at, n.tenant_id, n.namespace)
         > (to_timestamp($1::float8 / 1000), $2::int, $3::text collate "C")
 order by n.changed_at, n.tenant_id, n.namespace
 limit $4::int`,
};

/** A sample, and when its shift was set. */
export interface ChangedSample extends NamespaceSample {
  readonly changedAtMs: number;
}

/** Returns the samples that changed after a time, or after the last one that was read at that time. */
export async function listChangedSamples(
  runner: Runner,
  after: UsedNamespace & Pick<ChangedSample, "changedAtMs">,
  limit: number,
): Promise<readonly ChangedSample[]> {
  return runner.run<ChangedSample>(readChangedSamples, [
    ...[after.changedAtMs, after.tenantId, after.namespace, limit],
  ]);
}

/** A namespace's samples, with all their rows, of which there are a limited number. */
const removeSampleRows = {
  name: "remove_samples",
  text: `
with tombstones as (
  delete from insight_samples where tenant_id = $1::int and namespace = $2::text
)
delete from insight_key_samples where tenant_id = $1::int and namespace = $2::text`,
};

/** Deletes the tombstones and the sampled keys of a namespace. */
export async function removeSamples(runner: Runner, tenantId: number, namespace: string): Promise<void> {
  await runner.run(removeSampleRows, [tenantId, namespace]);
}
