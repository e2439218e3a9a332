import type { Client } from "@connectrpc/connect";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import type { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";

/** What a search for a key needs of TenantAdminService. */
export type SearchClient = Pick<
  Client<typeof TenantAdminService>,
  "listNamespaces" | "listUndeclaredNamespaces" | "listRecords"
>;

/** More namespaces than a person waits for; beyond them a namespace has to be named. Of each kind. */
const MAX_NAMESPACES = 100;
/** Requests at a time: a search must not use up the tenant's rate of calls. */
const PARALLEL = 4;

/** Namespaces to look into. */
export interface SearchedNamespaces {
  readonly names: readonly string[];
  /** False: there are more. */
  readonly isAll: boolean;
}

/** Returns the namespaces that have records or a policy: the first 100 declared and the first 100 others. */
export async function namespacesOf(client: SearchClient): Promise<SearchedNamespaces> {
  const page = { pageSize: MAX_NAMESPACES };
  const [declared, undeclared] = await Promise.all([
    client.listNamespaces(page),
    client.listUndeclaredNamespaces(page),
  ]);
  return {
    names: [...declared.namespaces.map(({ name }) => name), ...undeclared.names],
    isAll: declared.nextPageToken === "" && undeclared.nextPageToken === "",
  };
}

/**
 * Returns the records with exactly this key, of these namespaces. Keys are listed in byte order, so that the first one with
 * the prefix is the key itself if it has a record. An absent record is then no error answer.
 */
export async function findByKey(
  client: SearchClient,
  key: string,
  names: readonly string[],
): Promise<readonly Record[]> {
  const found: Record[] = [];
  for (let start = 0; start < names.length; start += PARALLEL) {
    const lists = await Promise.all(
      names
        .slice(start, start + PARALLEL)
        .map((namespace) => client.listRecords({ namespace, keyPrefix: key, pageSize: 1 })),
    );
    found.push(...lists.flatMap(({ records }) => records.filter((record) => record.key === key)));
  }
  return found;
}
