import type { NamespaceResource } from "../../domain/tenant-resource.ts";
import type { Runner } from "../pool.ts";
import { POLICY_COLUMNS, type PolicyRow, parsePolicy, policyParameters } from "./policy-columns.ts";

const COLUMNS = `
  tenant_id, name, date_part('epoch', created_at) * 1000 as created_at_ms, version, ${POLICY_COLUMNS}`;

type Row = PolicyRow & {
  readonly tenant_id: number;
  readonly name: string;
  readonly created_at_ms: number;
  readonly version: number;
};

const readNamespace = {
  name: "read_namespace",
  text: `select ${COLUMNS} from namespaces where tenant_id = $1::int and name = $2::text`,
};

/** A namespace that was declared; undefined: it was not. */
export async function findNamespaceResource(
  runner: Runner,
  tenantId: number,
  name: string,
): Promise<NamespaceResource | undefined> {
  const [row] = await runner.run<Row>(readNamespace, [tenantId, name]);
  return row && parse(row);
}

const listNamespaceRows = {
  name: "list_namespaces",
  text: `
select ${COLUMNS}
  from namespaces
 where tenant_id = $1::int
   and name > $2::text
 order by name
 limit $3::int`,
};

/** Up to so many of a tenant's namespaces, by name, behind a name. */
export async function listNamespaceResources(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
): Promise<readonly NamespaceResource[]> {
  return (await runner.run<Row>(listNamespaceRows, [tenantId, afterName, limit])).map(parse);
}

const putNamespaceRow = {
  name: "put_namespace",
  text: `
insert into namespaces as n (tenant_id, name, ${POLICY_COLUMNS})
values ($1::int, $2::text, $3::int, $4::int, $5::int, $6::int, $7::int, $8::text, $9::int, $10::boolean)
on conflict (tenant_id, name) do update set
  (${POLICY_COLUMNS}) = (
    excluded.key_retention_s, excluded.result_retention_s, excluded.failure_retention_s, excluded.default_lease_ms,
    excluded.max_lease_ms, excluded.on_lease_expiry, excluded.max_result_bytes, excluded.require_fingerprint),
  version = n.version + 1
returning ${COLUMNS}`,
};

/** Declares a namespace, or stores it as it is to become. The transaction has locked its tenant. */
export async function putNamespace(
  transaction: Runner,
  { tenantId, name, policy }: Pick<NamespaceResource, "tenantId" | "name" | "policy">,
): Promise<NamespaceResource> {
  const [row] = await transaction.run<Row>(putNamespaceRow, [tenantId, name, ...policyParameters(policy)]);
  if (row === undefined) throw new Error("a namespace was neither made nor changed");
  return parse(row);
}

const countNamespaceRows = {
  name: "count_namespaces",
  text: `
select count(*)::int as declared
  from (select from namespaces where tenant_id = $1::int limit $2::int) counted`,
};

/** How many namespaces a tenant has declared, as far as a number. */
export async function countNamespaces(runner: Runner, tenantId: number, upTo: number): Promise<number> {
  const [row] = await runner.run<{ declared: number }>(countNamespaceRows, [tenantId, upTo]);
  return row?.declared ?? 0;
}

const deleteNamespaceRow = {
  name: "delete_namespace",
  text: `delete from namespaces where tenant_id = $1::int and name = $2::text`,
};

/** Takes the namespace's policy away. */
export async function deleteNamespace(transaction: Runner, tenantId: number, name: string): Promise<void> {
  await transaction.run(deleteNamespaceRow, [tenantId, name]);
}

function parse(row: Row): NamespaceResource {
  return {
    tenantId: row.tenant_id,
    name: row.name,
    policy: parsePolicy(row),
    createdAtMs: row.created_at_ms,
    version: row.version,
  };
}
