import type { TenantResource } from "../../domain/tenant-resource.ts";
import type { Runner } from "../pool.ts";
import { LIMIT_COLUMNS, type LimitRow, limitParameters, parseBounds, parseQuotas } from "./limit-columns.ts";
import { POLICY_COLUMNS, type PolicyRow, parsePolicy, policyParameters } from "./policy-columns.ts";

const COLUMNS = `
  id, name, suspended_at is not null as suspended, deleted_at is not null as deleting,
  date_part('epoch', created_at) * 1000 as created_at_ms, version, ${POLICY_COLUMNS}, ${LIMIT_COLUMNS}`;

type Row = PolicyRow &
  LimitRow & {
    readonly id: number;
    readonly name: string;
    readonly suspended: boolean;
    readonly deleting: boolean;
    readonly created_at_ms: number;
    readonly version: number;
  };

const readTenant = { name: "read_tenant", text: `select ${COLUMNS} from tenants where id = $1::int` };
const lockTenantRow = { name: "lock_tenant", text: `${readTenant.text} for update` };
const readTenantByName = {
  name: "read_tenant_by_name",
  text: `select ${COLUMNS} from tenants where name = $1::text`,
};
const lockTenantRowByName = { name: "lock_tenant_by_name", text: `${readTenantByName.text} for update` };

/** The tenant of that id, or of that name; undefined if there is none. */
export async function findTenantResource(
  runner: Runner,
  tenant: number | string,
): Promise<TenantResource | undefined> {
  const [row] = await runner.run<Row>(typeof tenant === "number" ? readTenant : readTenantByName, [tenant]);
  return row && parse(row);
}

/** The same, and nobody else changes it until the transaction has ended. */
export async function lockTenant(
  transaction: Runner,
  tenant: number | string,
): Promise<TenantResource | undefined> {
  const statement = typeof tenant === "number" ? lockTenantRow : lockTenantRowByName;
  const [row] = await transaction.run<Row>(statement, [tenant]);
  return row && parse(row);
}

const listTenantRows = {
  name: "list_tenants",
  text: `select ${COLUMNS} from tenants where name > $1::text order by name limit $2::int`,
};

/** Up to so many tenants, by name, behind a name. */
export async function listTenantResources(
  runner: Runner,
  afterName: string,
  limit: number,
): Promise<readonly TenantResource[]> {
  return (await runner.run<Row>(listTenantRows, [afterName, limit])).map(parse);
}

const insertTenantRow = {
  name: "insert_tenant",
  text: `
insert into tenants (name, ${POLICY_COLUMNS}, ${LIMIT_COLUMNS})
values ($1::text, $2::int, $3::int, $4::int, $5::int, $6::int, $7::text, $8::int, $9::boolean,
        $10::int, $11::int, $12::int, $13::int, $14::int, $15::int, $16::int, $17::bigint, $18::bigint, $19::int,
        $20::boolean, $21::int)
on conflict (name) do nothing
returning ${COLUMNS}`,
};

/** Makes a tenant; undefined if its name is taken. */
export async function insertTenant(
  transaction: Runner,
  { name, policy, bounds, quotas }: Pick<TenantResource, "name" | "policy" | "bounds" | "quotas">,
): Promise<TenantResource | undefined> {
  const parameters = [name, ...policyParameters(policy), ...limitParameters(bounds, quotas)];
  const [row] = await transaction.run<Row>(insertTenantRow, parameters);
  return row && parse(row);
}

const updateTenantRow = {
  name: "update_tenant",
  text: `
update tenants set
  (${POLICY_COLUMNS}, ${LIMIT_COLUMNS}) = (
    $2::int, $3::int, $4::int, $5::int, $6::int, $7::text, $8::int, $9::boolean,
    $10::int, $11::int, $12::int, $13::int, $14::int, $15::int, $16::int, $17::bigint, $18::bigint, $19::int,
    $20::boolean, $21::int),
  suspended_at = case when $22::boolean then coalesce(suspended_at, now()) end,
  deleted_at = case when $23::boolean then coalesce(deleted_at, now()) end,
  version = version + 1
where id = $1::int
returning ${COLUMNS}`,
};

/** Stores a tenant that the transaction has locked, as it is to become, and answers it as it is now. */
export async function updateTenant(transaction: Runner, tenant: TenantResource): Promise<TenantResource> {
  const [row] = await transaction.run<Row>(updateTenantRow, [
    tenant.id,
    ...policyParameters(tenant.policy),
    ...limitParameters(tenant.bounds, tenant.quotas),
    tenant.state === "SUSPENDED",
    tenant.state === "DELETING",
  ]);
  if (row === undefined) throw new Error("a tenant that was locked is gone");
  return parse(row);
}

function parse(row: Row): TenantResource {
  return {
    id: row.id,
    name: row.name,
    state: row.deleting ? "DELETING" : row.suspended ? "SUSPENDED" : "ACTIVE",
    policy: parsePolicy(row),
    bounds: parseBounds(row),
    quotas: parseQuotas(row),
    createdAtMs: row.created_at_ms,
    version: row.version,
  };
}
