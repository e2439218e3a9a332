import type { CallOptions } from "@connectrpc/connect";
import type { TenantAdmin } from "@onceward/client/admin";
import { EXIT, Outcome } from "./failure.ts";
import { collectPages, type Listed } from "./pages.ts";
import { didYouMean } from "./similar.ts";

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

/** Namespaces that are searched for a similar name. */
const MAX_SEARCHED = 10_000;

/** @throws Outcome if the tenant has no namespace of this name, with the most similar one. */
export async function requireNamespace(
  client: Pick<TenantAdmin, "listNamespaces" | "listUndeclaredNamespaces">,
  call: CallOptions,
  name: string,
): Promise<void> {
  const { items, hasMore } = await namespaceNames(client, call, MAX_SEARCHED);
  if (hasMore || items.includes(name)) return;
  throw new Outcome(EXIT.notFound, `There is no namespace ${name}.${didYouMean(name, items)}`);
}
