import type { CallOptions } from "@connectrpc/connect";
import type { TenantAdmin } from "@onceward/client/admin";
import { collectPages, type Listed } from "./pages.ts";

/** Returns the names of the tenant's namespaces, declared or with records, sorted; at most `limit` of each kind. */
export async function namespaceNames(
  client: Pick<TenantAdmin, "listNamespaces" | "listUndeclaredNamespaces">,
  call: CallOptions,
  limit: number,
): Promise<Listed<string>> {
  const [declared, undeclared] = await Promise.all([
    collectPages(limit, async (page) => {
      const { namespaces, nextPageToken } = await client.listNamespaces(page, call);
      return { items: namespaces.map(({ name }) => name), nextPageToken };
    }),
    collectPages(limit, async (page) => {
      const { names, nextPageToken } = await client.listUndeclaredNamespaces(page, call);
      return { items: names, nextPageToken };
    }),
  ]);
  return {
    items: [...declared.items, ...undeclared.items].sort(),
    hasMore: declared.hasMore || undeclared.hasMore,
  };
}
