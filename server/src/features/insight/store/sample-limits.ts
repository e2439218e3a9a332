import type { Runner } from "../../../core/store/pool.ts";
import type { UsedNamespace } from "../../../records/after-operation.ts";

/** A deterministic sample of a namespace. */
export interface NamespaceSample extends UsedNamespace {
  /** One in 2^shift is sampled. */
  readonly shift: number;
  /** At least the number of its rows. */
  readonly held: number;
}

/** Returns a name that no other namespace of any tenant has. */
export function nameOf({ tenantId, namespace }: UsedNamespace): string {
  return `${tenantId}:${namespace}`;
}

/** The function of `createLimit`. */
export type LimitSample = ReturnType<typeof createLimit>;

/** Rows per statement: some tens of milliseconds. */
const PURGE_ROWS = 5000;

/**
 * Returns a function that halves a namespace's sample until it has at most `maxHeld` rows, and deletes the others. The function
 * returns the sample; undefined if there was nothing to do.
 *
 * @param samples the table of samples. @param rows the table of their rows.
 */
export function createLimit(
  samples: "insight_samples" | "insight_key_samples",
  rows: "insight_tombstones" | "insight_sampled_keys",
) {
  // Halves the sample if it exceeds a maximum once it is counted, which a deleted row does not do.
  const thinSample = {
    name: `thin_${samples}`,
    text: `
with counted as materialized (
  select n.shift, (select count(*)
                     from ${rows} t
                    where t.tenant_id = $1::int and t.namespace = $2::text and t.depth >= n.shift)::int as held,
         (select count(*)
            from ${rows} t
           where t.tenant_id = $1::int and t.namespace = $2::text and t.depth > n.shift)::int as halved
    from ${samples} n
   where n.tenant_id = $1::int
     and n.namespace = $2::text
     and n.held > $3::int
     for update
)
update ${samples} n set
  shift = n.shift + case when c.held > $3::int then 1 else 0 end,
  held = case when c.held > $3::int then c.halved else c.held end,
  changed_at = clock_timestamp()
  from counted c
 where n.tenant_id = $1::int
   and n.namespace = $2::text
returning n.tenant_id as "tenantId", n.namespace, n.shift, n.held`,
  };
  // Deletes some of the rows that are no longer sampled.
  const purgeRows = {
    name: `purge_${rows}`,
    text: `
with purged as (
  delete from ${rows} where ctid = any (array(
    select t.ctid
      from ${rows} t
     where t.tenant_id = $1::int
       and t.namespace = $2::text
       and t.depth < $3::smallint
     limit $4::int
       for update skip locked))
  returning 1
)
select count(*)::int as purged from purged`,
  };

  return async (
    runner: Runner,
    { tenantId, namespace }: UsedNamespace,
    maxHeld: number,
  ): Promise<NamespaceSample | undefined> => {
    let sample: NamespaceSample | undefined;
    for (;;) {
      const [thinned] = await runner.run<NamespaceSample>(thinSample, [tenantId, namespace, maxHeld]);
      if (thinned === undefined) break;
      sample = thinned;
      if (sample.held <= maxHeld) break;
    }
    if (sample === undefined || sample.shift === 0) return sample;
    for (let purged = PURGE_ROWS; purged === PURGE_ROWS; ) {
      const [row] = await runner.run<{ purged: number }>(purgeRows, [
        ...[tenantId, namespace, sample.shift, PURGE_ROWS],
      ]);
      purged = row?.purged ?? 0;
    }
    return sample;
  };
}
