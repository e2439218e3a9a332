import type { Runner } from "../../database/pool.ts";

/** Namespaces that one statement looks at: each takes some milliseconds on Citus, which asks every shard. */
export const NAMESPACES_PER_LOOK = 100;

/**
 * The function looks at the primary key once for each namespace, however many records it has. It is a function
 * because Citus has no recursive queries on distributed tables.
 */
const listNamespacesInUse = {
  name: "list_namespaces_in_use",
  text: `
select u.name,
       exists (select 1 from namespaces n where n.tenant_id = $1::int and n.name = u.name offset 0) as declared
  from namespaces_in_use($1::int, $2::text, $3::int) as u (name)
 order by u.name`,
};

/** Returns at most `limit` of a tenant's namespaces that have records, by name, after `afterName`. */
export async function findNamespacesInUse(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
): Promise<readonly { readonly name: string; readonly declared: boolean }[]> {
  return runner.run(listNamespacesInUse, [tenantId, afterName, limit]);
}
