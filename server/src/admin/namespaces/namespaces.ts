import type { Runner } from "../../database/pool.ts";
import { type FieldRow, POLICY_COLUMNS, placeholders } from "../../database/tenants/policy-columns.ts";
import type { NamespaceResource } from "../../domain/tenant.ts";
import { rangeOfPrefix } from "../name-prefix.ts";

const POLICY = POLICY_COLUMNS.names.join(", ");

const COLUMNS = `
  tenant_id as "tenantId", name, extract(epoch from created_at) * 1000 as "createdAtMs", version, ${POLICY_COLUMNS.selected}`;

type Row = FieldRow & Omit<NamespaceResource, "policy">;

const readNamespaces = {
  name: "read_namespaces",
  text: `select ${COLUMNS} from namespaces where tenant_id = $1::int and name = any($2::text[])`,
};

/** Returns a declared namespace; undefined if it was never declared. */
export async function findNamespaceResource(
  runner: Runner,
  tenantId: number,
  name: string,
): Promise<NamespaceResource | undefined> {
  return (await findNamespaceResources(runner, tenantId, [name])).get(name);
}

/** Returns those of the named namespaces that are declared, by name. */
export async function findNamespaceResources(
  runner: Runner,
  tenantId: number,
  names: readonly string[],
): Promise<ReadonlyMap<string, NamespaceResource>> {
  const rows = await runner.run<Row>(readNamespaces, [tenantId, names]);
  return new Map(rows.map(parse).map((namespace) => [namespace.name, namespace]));
}

const listNamespaceRows = {
  name: "list_namespaces",
  text: `
select ${COLUMNS}
  from namespaces
 where tenant_id = $1::int
   and name > $2::text
   and name < $4::text
 order by name
 limit $3::int`,
};

/** Returns at most `limit` of a tenant's namespaces, by name, that begin with `prefix` and come after `afterName`; empty: from the first. */
export async function listNamespaceResources(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
  prefix = "",
): Promise<readonly NamespaceResource[]> {
  const { after, before } = rangeOfPrefix(prefix);
  const rows = await runner.run<Row>(listNamespaceRows, [tenantId, afterName || after, limit, before]);
  return rows.map(parse);
}

const putNamespaceRow = {
  name: "put_namespace",
  text: `
insert into namespaces as n (tenant_id, name, ${POLICY})
values ($1::int, $2::text, ${placeholders(POLICY_COLUMNS.types, 3)})
on conflict (tenant_id, name) do update set
  (${POLICY}) = (${POLICY_COLUMNS.names.map((column) => `excluded.${column}`).join(", ")}),
  version = n.version + 1
returning ${COLUMNS}`,
};

/** Declares a namespace, or stores its new policy. The transaction has locked its tenant. */
export async function putNamespace(
  transaction: Runner,
  { tenantId, name, policy }: Pick<NamespaceResource, "tenantId" | "name" | "policy">,
): Promise<NamespaceResource> {
  const parameters = [tenantId, name, ...POLICY_COLUMNS.parameters(policy)];
  const [row] = await transaction.run<Row>(putNamespaceRow, parameters);
  if (row === undefined) throw new Error("a namespace was neither created nor changed");
  return parse(row);
}

const countNamespaceRows = {
  name: "count_namespaces",
  text: `
select count(*)::int as declared
  from (select
          from namespaces
         where tenant_id = $1::int
           and name > $3::text
           and name < $4::text
         limit $2::int) counted`,
};

/** Counts the namespaces that a tenant has declared and that begin with `prefix`, up to `upTo`. */
export async function countNamespaces(
  runner: Runner,
  tenantId: number,
  upTo: number,
  prefix = "",
): Promise<number> {
  const { after, before } = rangeOfPrefix(prefix);
  const parameters = [tenantId, upTo, after, before];
  const [row] = await runner.run<{ declared: number }>(countNamespaceRows, parameters);
  return row?.declared ?? 0;
}

const deleteNamespaceRow = {
  name: "delete_namespace",
  text: `delete from namespaces where tenant_id = $1::int and name = $2::text`,
};

/** Deletes the namespace's policy; its records follow the tenant's. */
export async function deleteNamespace(transaction: Runner, tenantId: number, name: string): Promise<void> {
  await transaction.run(deleteNamespaceRow, [tenantId, name]);
}

function parse(row: Row): NamespaceResource {
  const { tenantId, name, createdAtMs, version } = row;
  return { tenantId, name, policy: POLICY_COLUMNS.parse(row), createdAtMs, version };
}
