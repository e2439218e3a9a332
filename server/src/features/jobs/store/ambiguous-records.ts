import type { Runner } from "../../../core/store/pool.ts";
import { intArray } from "../../../core/store/sql-arrays.ts";

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
