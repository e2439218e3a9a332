import type { Runner } from "../database/pool.ts";
import type { UsedNamespace } from "../records/after-operation.ts";

/**
 * What a sample selects. Of a sampled key it holds a tombstone, once the sweep deleted the key's record; of a sampled
 * fingerprint the keys of its first claims.
 */
export type SampleKind = "key" | "fingerprint";

/** A namespace's sample of a kind. */
export interface SampleId extends UsedNamespace {
  readonly kind: SampleKind;
}

/** A deterministic sample of a namespace. */
export interface Sample extends SampleId {
  /** One in 2^shift is sampled. */
  readonly shift: number;
  /** At least the number of its keys. */
  readonly held: number;
}

/** Returns a name that no other sample has. */
export function nameOf({ tenantId, namespace, kind }: SampleId): string {
  return `${kind}:${tenantId}:${namespace}`;
}

/** Halves a sample if it exceeds a maximum once it is counted, which a deleted key does not do. */
const thinSample = {
  name: "thin_sample",
  text: `
with counted as materialized (
  select k.held, k.halved
    from insight_sample_shifts n
   cross join lateral (
         select count(*) filter (where s.depth >= n.shift)::int as held,
                count(*) filter (where s.depth > n.shift)::int as halved
           from insight_sampled_keys s
          where s.tenant_id = $1::int and s.namespace = $2::text and s.kind = $3::text) k
   where n.tenant_id = $1::int
     and n.namespace = $2::text
     and n.kind = $3::text
     and n.held > $4::int
     for update of n
)
update insight_sample_shifts n set
  shift = n.shift + case when c.held > $4::int then 1 else 0 end,
  held = case when c.held > $4::int then c.halved else c.held end,
  changed_at = clock_timestamp()
  from counted c
 where n.tenant_id = $1::int
   and n.namespace = $2::text
   and n.kind = $3::text
returning n.tenant_id as "tenantId", n.namespace, n.kind, n.shift, n.held`,
};

/** Deletes a batch of the keys below the depth of a sample. */
const purgeKeys = {
  name: "purge_sampled_keys",
  text: `
with purged as (
  delete from insight_sampled_keys where ctid = any (array(
    select s.ctid
      from insight_sampled_keys s
     where s.tenant_id = $1::int
       and s.namespace = $2::text
       and s.kind = $3::text
       and s.depth < $4::smallint
     limit $5::int
       for update skip locked))
  returning 1
)
select count(*)::int as purged from purged`,
};

/** Rows per statement: some tens of milliseconds. */
const PURGE_ROWS = 5000;

/**
 * Halves a sample until it has at most `maxHeld` keys, and deletes the others. Returns the sample; undefined if there was
 * nothing to do.
 */
export async function limitSample(
  runner: Runner,
  { tenantId, namespace, kind }: SampleId,
  maxHeld: number,
): Promise<Sample | undefined> {
  const id = [tenantId, namespace, kind];
  let sample: Sample | undefined;
  for (;;) {
    const [thinned] = await runner.run<Sample>(thinSample, [...id, maxHeld]);
    if (thinned === undefined) break;
    sample = thinned;
    if (sample.held <= maxHeld) break;
  }
  if (sample === undefined || sample.shift === 0) return sample;
  for (let purged = PURGE_ROWS; purged === PURGE_ROWS; ) {
    const [row] = await runner.run<{ purged: number }>(purgeKeys, [...id, sample.shift, PURGE_ROWS]);
    purged = row?.purged ?? 0;
  }
  return sample;
}

const readChangedSamples = {
  name: "read_changed_samples",
  text: `
select n.tenant_id as "tenantId", n.namespace, n.kind, n.shift, n.held,
       extract(epoch from n.changed_at) * 1000 as "changedAtMs"
  from insight_sample_shifts n
 where (n.changed_at, n.tenant_id, n.namespace, n.kind)
         > (to_timestamp($1::float8 / 1000), $2::int, $3::text collate "C", $4::text collate "C")
 order by n.changed_at, n.tenant_id, n.namespace, n.kind
 limit $5::int`,
};

/** A sample, and when its shift was set. */
export interface ChangedSample extends Sample {
  readonly changedAtMs: number;
}

/** Returns the samples that changed after a time, or after the last one that was read at that time. */
export async function listChangedSamples(
  runner: Runner,
  after: UsedNamespace & Pick<ChangedSample, "changedAtMs"> & { readonly kind: SampleKind | "" },
  limit: number,
): Promise<readonly ChangedSample[]> {
  return runner.run<ChangedSample>(readChangedSamples, [
    ...[after.changedAtMs, after.tenantId, after.namespace, after.kind, limit],
  ]);
}

/** A namespace's samples, with all their keys, of which there are a limited number. */
const removeSampleRows = {
  name: "remove_samples",
  text: `delete from insight_sample_shifts where tenant_id = $1::int and namespace = $2::text`,
};

/** Deletes the samples of a namespace. */
export async function removeSamples(runner: Runner, tenantId: number, namespace: string): Promise<void> {
  await runner.run(removeSampleRows, [tenantId, namespace]);
}
