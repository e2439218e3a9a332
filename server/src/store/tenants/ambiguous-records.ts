import type { Runner } from "../pool.ts";
import { intArray } from "../sql-arrays.ts";
import type { CountedUpTo } from "./tenant-totals.ts";

const findHoldingTenants = {
  name: "find_holding_tenants",
  text: `
select t.id
  from unnest($1::int[]) as i (id)
  join tenants t on t.id = i.id
 where t.on_lease_expiry = 'HOLD'
    or exists (select from namespaces n where n.tenant_id = t.id and n.on_lease_expiry = 'HOLD')
 order by t.id`,
};

/** Returns those of the tenants that have the policy HOLD, or a namespace with it: only they have ambiguous records. */
export async function findTenantsThatHold(runner: Runner, ids: readonly number[]): Promise<number[]> {
  const rows = await runner.run<{ id: number }>(findHoldingTenants, [intArray(ids)]);
  return rows.map(({ id }) => id);
}

const countAmbiguousPage = {
  name: "count_ambiguous_page",
  text: `
with page as materialized (
  select r.namespace, r.key,
         r.state = 1 /* in progress */ and r.holds_on_lease_expiry and r.lease_expires_at <= now()
           and r.expires_at > now() as is_ambiguous
    from records r
   where r.tenant_id = $1::int and (r.namespace, r.key) > ($2::text collate "C", $3::text collate "C")
   order by r.namespace, r.key
   limit $4::int
)
select count(*)::int as examined, (count(*) filter (where is_ambiguous))::int as ambiguous,
       (select namespace from page order by namespace desc, key desc limit 1) as namespace,
       (select key from page order by namespace desc, key desc limit 1) as key
  from page`,
};

/** A page of a tenant's records. */
interface AmbiguousPage {
  readonly ambiguous: number;
  /** The last record of the page; undefined if no record follows. */
  readonly upTo: CountedUpTo | undefined;
}

/** Counts the ambiguous ones among at most `maxRecords` of a tenant's records after a record. */
export async function countAmbiguous(
  runner: Runner,
  tenantId: number,
  after: CountedUpTo,
  maxRecords: number,
): Promise<AmbiguousPage> {
  interface Row {
    readonly examined: number;
    readonly ambiguous: number;
    readonly namespace: string | null;
    readonly key: string | null;
  }
  const parameters = [tenantId, after.namespace, after.key, maxRecords];
  const [row] = await runner.run<Row>(countAmbiguousPage, parameters);
  if (row === undefined) throw new Error("count_ambiguous_page returned no row");
  const { examined, ambiguous, namespace, key } = row;
  const isLast = namespace === null || key === null || examined < maxRecords;
  return { ambiguous, upTo: isLast ? undefined : { namespace, key } };
}
