import type { Runner, Statement } from "../../../core/store/pool.ts";

/** Tables with any number of rows per tenant. `tenant_totals` has one, which is deleted with the tenant's row. */
const OWNED_TABLES = [
  "insight_tombstones",
  "insight_samples",
  "insight_hours",
  "insight_late_hours",
  "insight_sampled_keys",
  "insight_key_samples",
  "insight_key_days",
  "usage_hours",
  "key_histories",
  "namespaces",
  "console_sessions",
  "api_keys",
] as const;

const removals: readonly Statement[] = OWNED_TABLES.map((table) => ({
  name: `remove_tenant_${table}`,
  text: `
with removed as (
  delete from ${table} where ctid = any (array(
    select o.ctid from ${table} o where o.tenant_id = $1::int limit $2::int))
  returning 1
)
select count(*)::int as removed from removed`,
}));

/** While the row is locked, no row that refers to the tenant can be added. */
const lockDeletedTenant = {
  name: "lock_deleted_tenant",
  text: "select 1 from tenants where id = $1::int and deleted_at is not null for update",
};

const removeTenantRow = {
  name: "remove_tenant",
  text: `delete from tenants where id = $1::int and deleted_at is not null`,
};

/**
 * Removes at most `maxRows` rows of a deleted tenant whose records are removed, and the tenant itself once none are left. Audit
 * events are kept.
 *
 * @returns whether the tenant was removed.
 */
export async function removeTenantBatch(
  transaction: Runner,
  tenantId: number,
  maxRows: number,
): Promise<boolean> {
  await transaction.run(lockDeletedTenant, [tenantId]);
  let rowsLeft = maxRows;
  for (const removal of removals) {
    const [row] = await transaction.run<{ removed: number }>(removal, [tenantId, rowsLeft]);
    rowsLeft -= row?.removed ?? 0;
    if (rowsLeft === 0) return false;
  }
  await transaction.run(removeTenantRow, [tenantId]);
  return true;
}
