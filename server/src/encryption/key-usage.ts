import type { Runner } from "../database/pool.ts";
import type { RecordId } from "../records/record.ts";

/** How many values are stored under a key. */
export interface KeyUsage {
  /** Null: in plain form. */
  readonly keyId: number | null;
  readonly results: number;
  readonly checkpoints: number;
}

/** Records per statement: some tens of milliseconds. */
const PAGE_RECORDS = 5000;

const countPage = {
  name: "count_key_usage",
  text: `
with examined as materialized (
  select r.tenant_id, r.namespace, r.key, r.result_key_id, r.checkpoint_key_id,
         (r.result_digest is not null)::int as results, (r.checkpoint_state is not null)::int as checkpoints
    from records r
   where (r.tenant_id, r.namespace, r.key) > ($1::int, $2::text collate "C", $3::text collate "C")
   order by r.tenant_id, r.namespace, r.key
   limit $4::int
), last as (
  select p.tenant_id, p.namespace, p.key from examined p order by p.tenant_id desc, p.namespace desc, p.key desc limit 1
), counted as (
  select v.key_id as "keyId", sum(v.results) as results, sum(v.checkpoints) as checkpoints
    from (select p.result_key_id as key_id, p.results, 0 as checkpoints from examined p where p.results > 0
          union all
          select p.checkpoint_key_id, 0, p.checkpoints from examined p where p.checkpoints > 0) v
   group by v.key_id
)
select (select count(*) from examined)::int as examined,
       (select coalesce(json_agg(c), '[]') from counted c) as usages,
       l.tenant_id as "tenantId", l.namespace, l.key
  from last l`,
};

/** A job holds the result that it stores until it ends; no pass encrypts it again. */
const countOfJobs = {
  name: "count_key_usage_of_jobs",
  text: `
select (j.resolution::json ->> 'keyId')::int as "keyId", count(*)::int as results, 0 as checkpoints
  from record_jobs j
 where j.finished_at is null and j.resolution::json ->> 'kind' = 'complete'
 group by 1`,
};

type PageRow = RecordId & { readonly examined: number; readonly usages: readonly KeyUsage[] };

/**
 * Counts the stored values of all records, and the results of unfinished jobs, by the key that encrypts them, in the order of
 * the keys' ids, plain form first. Runs a statement for every PAGE_RECORDS records.
 */
export async function countKeyUsage(runner: Runner): Promise<readonly KeyUsage[]> {
  const byKey = new Map<number | null, KeyUsage>();
  let after: RecordId | undefined = { tenantId: 0, namespace: "", key: "" };
  while (after !== undefined) {
    const page = await readPage(runner, after);
    for (const usage of page?.usages ?? []) byKey.set(usage.keyId, sumOf(byKey.get(usage.keyId), usage));
    after = page?.examined === PAGE_RECORDS ? page : undefined;
  }
  for (const usage of await runner.run<KeyUsage & Record<string, unknown>>(countOfJobs, []))
    byKey.set(usage.keyId, sumOf(byKey.get(usage.keyId), usage));
  return [...byKey.values()].sort((a, b) => (a.keyId ?? 0) - (b.keyId ?? 0));
}

async function readPage(
  runner: Runner,
  { tenantId, namespace, key }: RecordId,
): Promise<PageRow | undefined> {
  const [page] = await runner.run<PageRow>(countPage, [tenantId, namespace, key, PAGE_RECORDS]);
  return page;
}

function sumOf(one: KeyUsage | undefined, { keyId, results, checkpoints }: KeyUsage): KeyUsage {
  return {
    keyId,
    results: (one?.results ?? 0) + results,
    checkpoints: (one?.checkpoints ?? 0) + checkpoints,
  };
}
