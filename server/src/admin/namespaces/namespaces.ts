import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { type FieldRow, POLICY_COLUMNS } from "../../database/tenants/policy-columns.ts";
import { resolvePolicy } from "../../domain/policy.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { NamespaceResource, TenantResource } from "../../domain/tenant.ts";
import { timestamp } from "../../domain/violations.ts";
import { type Namespace, NamespaceSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { etagOf } from "../etags.ts";
import { rangeOfPrefix } from "../name-prefix.ts";
import { POLICY_MESSAGES } from "../policy-messages.ts";

/** A namespace's columns, for `parseNamespace`. */
export const NAMESPACE_COLUMNS = `
  tenant_id as "tenantId", name, extract(epoch from created_at) * 1000 as "createdAtMs", version, ${POLICY_COLUMNS.selected}`;

/** A row of these columns. */
export type NamespaceRow = FieldRow & Omit<NamespaceResource, "policy">;

const readNamespaces = {
  name: "read_namespaces",
  text: `select ${NAMESPACE_COLUMNS} from namespaces where tenant_id = $1::int and name = any($2::text[])`,
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
  const rows = await runner.run<NamespaceRow>(readNamespaces, [tenantId, names]);
  return new Map(rows.map(parseNamespace).map((namespace) => [namespace.name, namespace]));
}

const listNamespaceRows = {
  name: "list_namespaces",
  text: `
select ${NAMESPACE_COLUMNS}
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
  const rows = await runner.run<NamespaceRow>(listNamespaceRows, [
    tenantId,
    afterName || after,
    limit,
    before,
  ]);
  return rows.map(parseNamespace);
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

/** Returns the namespace of a row. */
export function parseNamespace(row: NamespaceRow): NamespaceResource {
  const { tenantId, name, createdAtMs, version } = row;
  return { tenantId, name, policy: POLICY_COLUMNS.parse(row), createdAtMs, version };
}

/** Returns a declared namespace, with the policy in force. */
export function namespaceMessage(namespace: NamespaceResource, tenant: TenantResource): Namespace {
  return create(NamespaceSchema, {
    name: namespace.name,
    policy: POLICY_MESSAGES.write(namespace.policy),
    effectivePolicy: POLICY_MESSAGES.write(resolvePolicy(tenant.policy, namespace.policy)),
    createdAt: timestamp(namespace.createdAtMs),
    etag: namespaceEtag(namespace),
  });
}

/** Returns the etag of a namespace's state. */
export function namespaceEtag({ tenantId, name, version }: NamespaceResource): string {
  return etagOf(["namespace", tenantId, name, version]);
}

/** Returns the refusal of a request for a namespace without a policy of its own. */
export function namespaceNotFound(): Refusal {
  return new Refusal(
    "NAMESPACE_NOT_FOUND",
    "The namespace was never declared; it follows the tenant's policy.",
  );
}
