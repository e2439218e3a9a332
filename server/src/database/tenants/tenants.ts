import {
  cacheScope,
  makeTenant,
  type Tenant,
  type TenantResource,
  type TenantState,
} from "../../domain/tenant.ts";
import type { LabelledTenant } from "../../telemetry/tenant-labels.ts";
import type { Pool, Runner } from "../pool.ts";
import { intArray, textArray } from "../sql-arrays.ts";
import { createLoadedNamespaces } from "./loaded-namespaces.ts";
import {
  BOUND_COLUMNS,
  type FieldRow,
  POLICY_COLUMNS,
  parseQuotas,
  placeholders,
  QUOTA_COLUMNS,
} from "./policy-columns.ts";

// Tenants as calls need them.

const CALL_COLUMNS = `${POLICY_COLUMNS.selected}, ${QUOTA_COLUMNS.selected}`;

type CallRow = FieldRow &
  Pick<Tenant, "id" | "uid" | "name" | "suspended" | "moving"> &
  Readonly<Record<"cache_generation" | "namespaces_version" | "now_ms", number>> & {
    readonly lost_at_ms: number | null;
    readonly moved_to: string | null;
  } & Readonly<Record<"installation_id" | "stored_records" | "stored_bytes", string>>;

const readTenants = {
  name: "read_tenants",
  text: `
select id, uid, (select id from installation) as installation_id, name,
       suspended_at is not null or deleted_at is not null as suspended,
       moving_since is not null and deleted_at is null as moving, moved_to, cache_generation, namespaces_version,
       extract(epoch from now()) * 1000 as now_ms, extract(epoch from records_lost_at) * 1000 as lost_at_ms, ${CALL_COLUMNS},
       coalesce(totals.records, 0) as stored_records, coalesce(totals.stored_bytes, 0) as stored_bytes
  from tenants
  left join lateral (select * from tenant_totals own where own.tenant_id = id limit 1) totals on true
 where id = any ($1::int[])`,
};

/**
 * Returns a function that reads tenants; one that doesn't exist is missing from the map. Policies of namespaces are loaded on
 * demand, and kept between reads.
 */
export function createFindTenants(pool: Pool) {
  const loaded = createLoadedNamespaces(pool);
  return async (ids: readonly number[]): Promise<ReadonlyMap<number, Tenant>> => {
    const askedAtMs = performance.now();
    const rows = await pool.run<CallRow>(readTenants, [intArray(ids)]);
    const tenants = rows.map(async (row) => {
      const { installation_id: installationId, uid: tenantUid, cache_generation: generation } = row;
      const tenant = makeTenant({
        id: row.id,
        uid: tenantUid,
        name: row.name,
        suspended: row.suspended,
        moving: row.moving,
        movedTo: row.moved_to ?? undefined,
        recordsLostAtMs: row.lost_at_ms ?? undefined,
        cacheEpoch: {
          scope: cacheScope({ installationId, tenantUid, generation }),
          askedAtMs,
          databaseTimeMs: row.now_ms,
        },
        overrides: POLICY_COLUMNS.parse(row),
        namespaces: await loaded.of(
          { tenantId: row.id, identity: `${installationId}/${tenantUid}` },
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

const readTenantIds = {
  name: "read_tenant_ids",
  text: `
select id, name
  from tenants
 where name = any ($1::text[])`,
};

/** Returns the ids of tenants by their names; a name that no tenant has is missing from the map. */
export async function findTenantIds(
  pool: Pool,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await pool.run<{ id: number; name: string }>(readTenantIds, [textArray(names)]);
  return new Map(rows.map(({ id, name }) => [name, id]));
}

const readLabelledTenants = {
  name: "read_labelled_tenants",
  text: "select id, name from tenants order by id limit $1::int",
};

/** Reads the tenants that were created first and still exist, in the order of their creation. */
export function findLabelledTenants(runner: Runner, count: number): Promise<LabelledTenant[]> {
  return runner.run<{ id: number; name: string }>(readLabelledTenants, [count]);
}

// Tenants as their administrators and operators see them.

const SETTINGS = [POLICY_COLUMNS, BOUND_COLUMNS, QUOTA_COLUMNS] as const;
const SETTING_COLUMNS = SETTINGS.flatMap(({ names }) => names).join(", ");
const SELECTED_SETTINGS = SETTINGS.map(({ selected }) => selected).join(", ");
const SETTING_TYPES = SETTINGS.flatMap(({ types }) => types);

function settingParameters({ policy, bounds, quotas }: Settings): readonly unknown[] {
  return [
    ...POLICY_COLUMNS.parameters(policy),
    ...BOUND_COLUMNS.parameters(bounds),
    ...QUOTA_COLUMNS.parameters(quotas),
  ];
}

type Settings = Pick<TenantResource, "policy" | "bounds" | "quotas">;

const COLUMNS = `
  id, name, suspended_at is not null as suspended, moving_since is not null as moving, moved_to, deleted_at is not null as deleting,
  extract(epoch from created_at) * 1000 as "createdAtMs", version, ${SELECTED_SETTINGS}`;

type ResourceRow = FieldRow &
  Pick<TenantResource, "id" | "name" | "createdAtMs" | "version"> &
  Readonly<Record<"suspended" | "moving" | "deleting", boolean>> & { readonly moved_to: string | null };

const readTenant = { name: "read_tenant", text: `select ${COLUMNS} from tenants where id = $1::int` };
const lockTenantRow = { name: "lock_tenant", text: `${readTenant.text} for update` };
const readTenantByName = {
  name: "read_tenant_by_name",
  text: `select ${COLUMNS} from tenants where name = $1::text`,
};
const lockTenantRowByName = { name: "lock_tenant_by_name", text: `${readTenantByName.text} for update` };

/** Returns the tenant of that id, or of that name; undefined if there is none. */
export async function findTenantResource(
  runner: Runner,
  tenant: number | string,
): Promise<TenantResource | undefined> {
  const statement = typeof tenant === "number" ? readTenant : readTenantByName;
  const [row] = await runner.run<ResourceRow>(statement, [tenant]);
  return row && parseResource(row);
}

/** Returns the same as `findTenantResource`, and locks the tenant until the transaction ends. */
export async function lockTenant(
  transaction: Runner,
  tenant: number | string,
): Promise<TenantResource | undefined> {
  const statement = typeof tenant === "number" ? lockTenantRow : lockTenantRowByName;
  const [row] = await transaction.run<ResourceRow>(statement, [tenant]);
  return row && parseResource(row);
}

const listTenantRows = {
  name: "list_tenants",
  text: `select ${COLUMNS} from tenants where name > $1::text order by name limit $2::int`,
};

/** Returns at most `limit` tenants, by name, whose names come after `afterName`. */
export async function listTenantResources(
  runner: Runner,
  afterName: string,
  limit: number,
): Promise<readonly TenantResource[]> {
  return (await runner.run<ResourceRow>(listTenantRows, [afterName, limit])).map(parseResource);
}

const findTenantRows = {
  name: "find_tenants",
  text: `select ${COLUMNS} from tenants where id = any($1::int[]) order by id`,
};

/** Returns the tenants with these ids, in the order of the ids as they are given. */
export async function findTenantResources(
  runner: Runner,
  ids: readonly number[],
): Promise<readonly TenantResource[]> {
  const rows = await runner.run<ResourceRow>(findTenantRows, [intArray(ids)]);
  const found = new Map(rows.map(parseResource).map((tenant) => [tenant.id, tenant]));
  return ids.flatMap((id) => found.get(id) ?? []);
}

const insertTenantRow = {
  name: "insert_tenant",
  text: `
insert into tenants (name, ${SETTING_COLUMNS})
values ($1::text, ${placeholders(SETTING_TYPES, 2)})
on conflict (name) do nothing
returning ${COLUMNS}`,
};

/** Creates a tenant; returns undefined if its name is taken. */
export async function insertTenant(
  transaction: Runner,
  tenant: Settings & Pick<TenantResource, "name">,
): Promise<TenantResource | undefined> {
  const [row] = await transaction.run<ResourceRow>(insertTenantRow, [
    tenant.name,
    ...settingParameters(tenant),
  ]);
  return row && parseResource(row);
}

const updateTenantRow = {
  name: "update_tenant",
  text: `
update tenants set
  (${SETTING_COLUMNS}) = (${placeholders(SETTING_TYPES, 6)}),
  suspended_at = case when $2::boolean then coalesce(suspended_at, now()) end,
  moving_since = case when $3::boolean then coalesce(moving_since, now()) end,
  moved_to = $5::text,
  deleted_at = case when $4::boolean then coalesce(deleted_at, now()) end,
  version = version + 1
where id = $1::int
returning ${COLUMNS}`,
};

/** Stores the new state of a tenant that the transaction has locked, and returns it with its new version. */
export async function updateTenant(transaction: Runner, tenant: TenantResource): Promise<TenantResource> {
  const [row] = await transaction.run<ResourceRow>(updateTenantRow, [
    tenant.id,
    tenant.state === "SUSPENDED",
    tenant.state === "MOVING",
    tenant.state === "DELETING",
    tenant.movedTo ?? null,
    ...settingParameters(tenant),
  ]);
  if (row === undefined) throw new Error("a locked tenant is missing");
  return parseResource(row);
}

function stateOf({ deleting, moving, suspended }: ResourceRow): TenantState {
  if (deleting) return "DELETING";
  if (moving) return "MOVING";
  return suspended ? "SUSPENDED" : "ACTIVE";
}

function parseResource(row: ResourceRow): TenantResource {
  return {
    id: row.id,
    name: row.name,
    state: stateOf(row),
    movedTo: row.moved_to ?? undefined,
    policy: POLICY_COLUMNS.parse(row),
    bounds: BOUND_COLUMNS.parse(row),
    quotas: parseQuotas(row),
    createdAtMs: row.createdAtMs,
    version: row.version,
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

/** Returns the id of the tenant of that name; creates the tenant if there is none. */
export async function ensureTenant(pool: Pool, name: string): Promise<number> {
  // The first statement does not see a tenant that another transaction is creating; the second does.
  for (let attempt = 1; attempt <= 2; attempt++) {
    const [row] = await pool.run<{ id: number }>(ensureTenantRow, [name]);
    if (row !== undefined) return row.id;
  }
  throw new Error(`tenant ${name} could neither be created nor found`);
}
