import type { Runner } from "../pool.ts";

/** A namespace that has records. */
export interface NamespaceInUse {
  readonly name: string;
  readonly declared: boolean;
}

/**
 * Finds namespaces by one look at the primary key for each, however many records it has. `limit` on the recursive query
 * ends it early.
 */
const listNamespacesInUse = {
  name: "list_namespaces_in_use",
  text: `
with recursive used (name) as (
  (select r.namespace
     from records r
    where r.tenant_id = $1::int
      and r.namespace > $2::text
    order by r.tenant_id, r.namespace
    limit 1)
  union all
  select (select r.namespace
            from records r
           where r.tenant_id = $1::int
             and r.namespace > used.name
           order by r.tenant_id, r.namespace
           limit 1)
    from used
   where used.name is not null
), page as (
  select name from used where name is not null limit $3::int
)
select p.name,
       exists (select 1 from namespaces n where n.tenant_id = $1::int and n.name = p.name offset 0) as declared
  from page p
 order by p.name`,
};

/** Returns at most `limit` of a tenant's namespaces that have records, by name, behind `afterName`. */
export async function findNamespacesInUse(
  runner: Runner,
  tenantId: number,
  afterName: string,
  limit: number,
): Promise<readonly NamespaceInUse[]> {
  return runner.run<NamespaceInUse>(listNamespacesInUse, [tenantId, afterName, limit]);
}
