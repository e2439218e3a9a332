import type { Runner, Statement } from "../../database/pool.ts";

/** A column by which a table's rows are removed: its name, its type, and a value before all others. */
type KeyColumn = readonly [name: string, type: string, before: string];

const NAMESPACE = ["namespace", "text", ""] as const;
const KIND = ["kind", "text", ""] as const;
const HOUR = ["hour", "timestamptz", "-infinity"] as const;
const RETENTION = ["retention_s", "int", "-2147483648"] as const;

/**
 * Tables with any number of rows per tenant, and the columns after the tenant in an index. `tenant_totals` has one row, which is
 * deleted with the tenant's.
 */
const OWNED_TABLES: readonly (readonly [table: string, ...key: KeyColumn[]])[] = [
  [
    "insight_sampled_keys",
    NAMESPACE,
    KIND,
    ["key_hash", "bytea", "\\x"],
    ["fingerprint_hash", "bytea", "\\x"],
  ],
  ["insight_sample_shifts", NAMESPACE, KIND],
  ["insight_hours", NAMESPACE, HOUR, RETENTION],
  ["insight_late_hours", NAMESPACE, HOUR, RETENTION, ["shift", "int2", "-32768"]],
  ["insight_key_days", NAMESPACE, ["day", "timestamptz", "-infinity"]],
  ["usage_hours", HOUR, NAMESPACE],
  ["key_histories", ["slot", "int", "-2147483648"]],
  ["namespaces", ["name", "text", ""]],
  // At most 20 for each API key or token's subject, and its index has nothing after the tenant.
  ["console_sessions"],
  ["api_keys", ["created_at", "timestamptz", "-infinity"], ["id", "text", ""]],
];

const REMOVALS = OWNED_TABLES.map(([table, ...key]) => {
  const names = key.map(([name]) => `o.${name}`).join(", ");
  const texts = key.map(([name]) => `to_jsonb(o.${name}) #>> '{}'`).join(", ");
  const after = key.map(([, type], n) => `$${n + 3}::${type}`).join(", ");
  const behind = key.length === 0 ? "" : `and (${names}) > (${after}) order by ${names}`;
  const statement: Statement = {
    name: `remove_tenant_${table}`,
    text: `
with page as materialized (
  select o.ctid as row_id, array[${texts}]::text[] as key
    from ${table} o
   where o.tenant_id = $1::int ${behind}
   limit $2::int
), removed as (
  delete from ${table} where ctid = any (array(select row_id from page))
)
select (select count(*) from page)::int as examined,
       (select key from page offset greatest((select count(*) from page) - 1, 0)) as last_key`,
  };
  /** `start` is a key before all rows of the table. */
  return { table, start: key.map(([, , before]) => before), statement };
});

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
 * @param position what the batch before returned; empty: this is the first. Each batch begins after the rows that those before
 *   removed, since indexes keep them until the next vacuum.
 * @returns undefined if the tenant was removed, with all rows that were added behind a position.
 */
export async function removeTenantBatch(
  transaction: Runner,
  tenantId: number,
  maxRows: number,
  position: string,
): Promise<string | undefined> {
  await transaction.run(lockDeletedTenant, [tenantId]);
  let rowsLeft = maxRows;
  const begin = parsePosition(position);
  for (const [n, { table, start, statement }] of REMOVALS.entries()) {
    if (n < begin.table) continue;
    const key = n === begin.table ? begin.key : start;
    const [row] = await transaction.run<{ examined: number; last_key: string[] | null }>(statement, [
      tenantId,
      rowsLeft,
      ...key,
    ]);
    rowsLeft -= row?.examined ?? 0;
    // By the table's name: its number may differ in another version of the server.
    if (rowsLeft === 0) return JSON.stringify([table, ...(row?.last_key ?? key)]);
  }
  await transaction.run(removeTenantRow, [tenantId]);
  return undefined;
}

/** Returns the number of a position's table, and the key in it; the first table's start if this version has no such table. */
function parsePosition(text: string): { readonly table: number; readonly key: readonly string[] } {
  const [name, ...key]: readonly string[] = text === "" ? [] : JSON.parse(text);
  const table = REMOVALS.findIndex((known) => known.table === name && known.start.length === key.length);
  return table === -1 ? { table: 0, key: REMOVALS[0]?.start ?? [] } : { table, key };
}
