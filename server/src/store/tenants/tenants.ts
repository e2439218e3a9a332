import { copyScope, makeTenant, type Tenant } from "../../domain/tenant.ts";
import type { Pool } from "../pool.ts";
import { intArray, textArray } from "../sql-arrays.ts";
import { LIMIT_COLUMNS, type LimitRow, parseQuotas } from "./limit-columns.ts";
import { createLoadedNamespaces } from "./loaded-namespaces.ts";
import { POLICY_COLUMNS, type PolicyRow, parsePolicy } from "./policy-columns.ts";

type TenantRow = PolicyRow &
  LimitRow & {
    readonly id: number;
    readonly uid: string;
    readonly installation_id: string;
    readonly name: string;
    readonly suspended: boolean;
    readonly cache_generation: number;
    readonly namespaces_version: number;
    readonly now_ms: number;
    readonly stored_records: string;
    readonly stored_bytes: string;
  };

const readTenants = {
  name: "read_tenants",
  text: `
select id, uid, (select id from installation) as installation_id, name,
       suspended_at is not null or deleted_at is not null as suspended, cache_generation, namespaces_version,
       date_part('epoch', now()) * 1000 as now_ms, ${POLICY_COLUMNS}, ${LIMIT_COLUMNS},
       coalesce(totals.records, 0) as stored_records, coalesce(totals.stored_bytes, 0) as stored_bytes
  from tenants
  left join lateral (select * from tenant_totals own where own.tenant_id = id limit 1) totals on true
 where id = any ($1::int[])`,
};

/** Reads tenants; a tenant that doesn't exist is missing from the map. Policies of namespaces are loaded on demand. */
export type FindTenants = (ids: readonly number[]) => Promise<ReadonlyMap<number, Tenant>>;

/** @returns what reads tenants, and keeps the policies of their namespaces from one time to the next. */
export function createFindTenants(pool: Pool): FindTenants {
  const loaded = createLoadedNamespaces(pool);
  return async (ids) => {
    const askedAtMs = performance.now();
    const rows = await pool.run<TenantRow>(readTenants, [intArray(ids)]);
    const tenants = rows.map(async (row) => {
      const tenant = makeTenant({
        id: row.id,
        uid: row.uid,
        name: row.name,
        suspended: row.suspended,
        cacheEpoch: { scope: scopeOf(row), askedAtMs, databaseTimeMs: row.now_ms },
        overrides: parsePolicy(row),
        namespaces: await loaded.of(
          { tenantId: row.id, identity: `${row.installation_id}/${row.uid}` },
          row.namespaces_version,
        ),
        quotas: parseQuotas(row),
        totals: { records: Number(row.stored_records), storedBytes: Number(row.stored_bytes) },
      });
      return [row.id, tenant] as const;
    });
    return new Map(await Promise.all(tenants));
  };
}

function scopeOf({ installation_id, uid, cache_generation }: TenantRow): string {
  return copyScope({ installationId: installation_id, tenantUid: uid, generation: cache_generation });
}

const readTenantIds = {
  name: "read_tenant_ids",
  text: `
select id, name
  from tenants
 where name = any ($1::text[])`,
};

/** The ids of tenants by their names; a name that no tenant has is missing from the map. */
export async function findTenantIds(
  pool: Pool,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await pool.run<{ id: number; name: string }>(readTenantIds, [textArray(names)]);
  return new Map(rows.map(({ id, name }) => [name, id]));
}

const ensureTenantRow = {
  name: "ensure_tenant",
  text: `
with inserted as (
  insert into tenants (name) values ($1::text) on conflict (name) do nothing returning id
)
select id from inserted
union all
select id from tenants where name = $1::text
limit 1`,
};

/** The id of the tenant of that name, made if there is none. */
export async function ensureTenant(pool: Pool, name: string): Promise<number> {
  // A tenant that somebody else is just making is seen by the second statement.
  for (let look = 1; look <= 2; look++) {
    const [row] = await pool.run<{ id: number }>(ensureTenantRow, [name]);
    if (row !== undefined) return row.id;
  }
  throw new Error(`tenant ${name} could neither be made nor found`);
}
