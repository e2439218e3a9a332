import type { StoredTotals } from "../../domain/quotas.ts";
import { SEALED_OVERHEAD_BYTES } from "../../records/engine/record-values.ts";
import type { Runner } from "../pool.ts";
import { bigintArray, intArray } from "../sql-arrays.ts";

/** The stored bytes of the result of a row `r` of records, as they are in plain form. */
export const STORED_RESULT_BYTES = `coalesce(octet_length(r.result_payload) - case when r.result_key_id is null then 0 else ${SEALED_OVERHEAD_BYTES} end, 0)
       + coalesce(case when r.result_key_id is null then octet_length(r.result_metadata)
                       else octet_length(r.result_metadata) * 3 / 4 - ${SEALED_OVERHEAD_BYTES} end, 0)`;

/**
 * The stored bytes of a row `r` of records, as they are in plain form: neither encryption nor a change of keys
 * changes what a tenant's quota counts.
 */
export const STORED_BYTES = `(${STORED_RESULT_BYTES}
       + coalesce(octet_length(r.checkpoint_state) - case when r.checkpoint_key_id is null then 0 else ${SEALED_OVERHEAD_BYTES} end, 0)
    )`;

/** The growth of a tenant's stored totals, negative if they shrank. */
export interface TotalsChange extends StoredTotals {
  readonly tenantId: number;
}

/**
 * Adds to the totals of those tenants that have a quota of them, also before their first count. Rows are locked in the order of
 * their tenants, so that two replicas never wait for each other.
 */
const addToTotals = {
  name: "add_to_totals",
  text: `
insert into tenant_totals as c (tenant_id, records, stored_bytes)
select t.id, i.records, i.stored_bytes
  from unnest($1::int[], $2::bigint[], $3::bigint[]) as i (tenant_id, records, stored_bytes)
 cross join lateral (
       select own.id
         from tenants own
        where own.id = i.tenant_id
          and (own.quota_live_records is not null or own.quota_stored_bytes is not null)
        limit 1) t
 order by t.id
on conflict (tenant_id) do update set
  records = greatest(0, c.records + excluded.records),
  stored_bytes = greatest(0, c.stored_bytes + excluded.stored_bytes)
returning c.tenant_id as "tenantId", c.records::numeric as records, c.stored_bytes::numeric as "storedBytes"`,
};

/** Stores changes of distinct tenants, and returns the new totals of those that are counted. */
export async function addTotals(
  runner: Runner,
  changes: readonly TotalsChange[],
): Promise<readonly TotalsChange[]> {
  return await runner.run<TotalsChange>(addToTotals, [
    intArray(changes.map(({ tenantId }) => tenantId)),
    bigintArray(changes.map(({ records }) => records)),
    bigintArray(changes.map(({ storedBytes }) => storedBytes)),
  ]);
}

/** How long a replica reserves a count with each page. If the replica dies, another one takes over after this. */
const COUNTING_FOR = "interval '30 seconds'";

/** A reservation for longer was made while the database's clock was ahead. So was a due time that is more than a day off. */
const IS_FREE = "(c.counting_until <= now() or c.counting_until > now() + interval '1 minute')";

/** Locks the most overdue of the counts that are due, and that no other statement has locked. */
const firstDue = (isDue: string) => `
  select *
    from (select c.tenant_id, c.count_due_at
            from tenant_totals c
           where ${isDue}
             and ${IS_FREE}
           order by c.count_due_at
           limit 1
             for update skip locked) c`;

/** Reserves the most overdue count for a replica. The row of a tenant without a quota of records or bytes is deleted instead. */
const takeDueCount = {
  name: "take_due_count",
  text: `
with due as materialized (
${firstDue("c.count_due_at <= now()")}
  union all
${firstDue("c.count_due_at > now() + interval '1 day'")}
  order by count_due_at
  limit 1
), counted as materialized (
  select t.id
    from due
   cross join lateral (
         select own.id
           from tenants own
          where own.id = due.tenant_id
            and (own.quota_live_records is not null or own.quota_stored_bytes is not null)
            and own.deleted_at is null
          limit 1) t
), reserved as (
  update tenant_totals set counting_until = now() + ${COUNTING_FOR}
   where tenant_id = (select id from counted)
), removed as (
  delete from tenant_totals
   where tenant_id = (select tenant_id from due)
     and not exists (select from counted)
)
select tenant_id as "tenantId", exists (select from counted) as "isCounted"
  from due`,
};

/** Returns the tenant that the caller shall count now; undefined if no count is due. */
export async function takeCount(runner: Runner): Promise<number | undefined> {
  for (;;) {
    const [due] = await runner.run<{ tenantId: number; isCounted: boolean }>(takeDueCount, []);
    if (due === undefined || due.isCounted) return due?.tenantId;
  }
}

/** The last record that was counted. */
export interface CountedUpTo {
  readonly namespace: string;
  readonly key: string;
}

/** Sorts before every record: no namespace is empty. */
export const FROM_THE_START: CountedUpTo = { namespace: "", key: "" };

const countPage = {
  name: "count_page",
  text: `
with page as materialized (
  select r.namespace, r.key, ${STORED_BYTES} as stored_bytes
    from records r
   where r.tenant_id = $1::int and (r.namespace, r.key) > ($2::text collate "C", $3::text collate "C")
   order by r.namespace, r.key
   limit $4::int
), extended as (
  update tenant_totals set counting_until = now() + ${COUNTING_FOR} where tenant_id = $1::int
)
select count(*)::int as records, coalesce(sum(stored_bytes), 0)::numeric as "storedBytes",
       (select namespace from page order by namespace desc, key desc limit 1) as namespace,
       (select key from page order by namespace desc, key desc limit 1) as key
  from page`,
};

/** Counts at most `maxRecords` of a tenant's records after a record, and extends the caller's reservation. */
export async function countRecordsPage(
  runner: Runner,
  tenantId: number,
  after: CountedUpTo,
  maxRecords: number,
): Promise<StoredTotals & { readonly upTo: CountedUpTo | undefined }> {
  const parameters = [tenantId, after.namespace, after.key, maxRecords];
  type Row = StoredTotals & { readonly namespace: string | null; readonly key: string | null };
  const [row] = await runner.run<Row>(countPage, parameters);
  if (row === undefined) throw new Error("the count returned no row");
  const { records, storedBytes, namespace, key } = row;
  const isLast = namespace === null || key === null || records < maxRecords;
  return { records, storedBytes, upTo: isLast ? undefined : { namespace, key } };
}

const storeCount = {
  name: "store_count",
  text: `
update tenant_totals set
  records = $2::bigint,
  stored_bytes = $3::bigint,
  counting_until = '-infinity',
  count_due_at = now() + $4::int * interval '1 millisecond'
where tenant_id = $1::int`,
};

/** Stores a finished count, and when the next one is due. */
export async function storeCountedTotals(
  runner: Runner,
  { tenantId, records, storedBytes }: TotalsChange,
  nextInMs: number,
): Promise<void> {
  await runner.run(storeCount, [tenantId, records, storedBytes, Math.round(nextInMs)]);
}
