import type { OnLeaseExpiry, PolicyOverrides } from "../domain/policy.ts";
import { makeTenant, type Tenant } from "../domain/tenant.ts";
import type { Pool } from "./pool.ts";
import { scalarArray } from "./sql-arrays.ts";

const POLICY_COLUMNS = `
  key_retention_s, result_retention_s, failure_retention_s, default_lease_ms, max_lease_ms, on_lease_expiry,
  max_result_bytes, require_fingerprint`;

interface PolicyRow {
  readonly key_retention_s: number | null;
  readonly result_retention_s: number | null;
  readonly failure_retention_s: number | null;
  readonly default_lease_ms: number | null;
  readonly max_lease_ms: number | null;
  readonly on_lease_expiry: OnLeaseExpiry | null;
  readonly max_result_bytes: number | null;
  readonly require_fingerprint: boolean | null;
}

type TenantRow = PolicyRow & {
  readonly id: number;
  readonly name: string;
  readonly suspended: boolean;
  readonly cache_generation: number;
  readonly now_ms: number;
};
type NamespaceRow = PolicyRow & { readonly tenant_id: number; readonly name: string };

const readTenants = {
  name: "read_tenants",
  text: `
select id, name, suspended_at is not null as suspended, cache_generation,
       date_part('epoch', now()) * 1000 as now_ms, ${POLICY_COLUMNS}
  from tenants
 where id = any ($1::int[])`,
};

const readNamespaces = {
  name: "read_namespaces",
  text: `
select tenant_id, name, ${POLICY_COLUMNS}
  from namespaces
 where tenant_id = any ($1::int[])`,
};

/** Reads tenants with the policies of their namespaces; a tenant that doesn't exist is missing from the map. */
export async function findTenants(pool: Pool, ids: readonly number[]): Promise<ReadonlyMap<number, Tenant>> {
  const askedAtMs = performance.now();
  const [tenants, namespaces] = await Promise.all([
    pool.run<TenantRow>(readTenants, [scalarArray(ids)]),
    pool.run<NamespaceRow>(readNamespaces, [scalarArray(ids)]),
  ]);
  const namespacesByTenant = Map.groupBy(namespaces, (row) => row.tenant_id);
  return new Map(
    tenants.map((row) => {
      const own = namespacesByTenant.get(row.id) ?? [];
      return [
        row.id,
        makeTenant({
          id: row.id,
          name: row.name,
          suspended: row.suspended,
          copies: { generation: row.cache_generation, askedAtMs, databaseTimeMs: row.now_ms },
          overrides: parsePolicy(row),
          namespaceOverrides: own.map(namespaceEntry),
        }),
      ];
    }),
  );
}

function namespaceEntry(row: NamespaceRow): readonly [string, PolicyOverrides] {
  return [row.name, parsePolicy(row)];
}

function parsePolicy(row: PolicyRow): PolicyOverrides {
  return {
    keyRetentionS: row.key_retention_s ?? undefined,
    resultRetentionS: row.result_retention_s ?? undefined,
    failureRetentionS: row.failure_retention_s ?? undefined,
    defaultLeaseMs: row.default_lease_ms ?? undefined,
    maxLeaseMs: row.max_lease_ms ?? undefined,
    onLeaseExpiry: row.on_lease_expiry ?? undefined,
    maxResultBytes: row.max_result_bytes ?? undefined,
    requireFingerprint: row.require_fingerprint ?? undefined,
  };
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
