import type { CallOptions } from "@connectrpc/connect";
import type { Operator, TenantAdmin } from "@onceward/client/admin";
import type { Command } from "commander";
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
    collectPages(limit, "namespaces", (page) => client.listNamespaces(page, call)),
    collectPages(limit, "names", (page) => client.listUndeclaredNamespaces(page, call)),
  ]);
  return {
    items: [...declared.items.map(({ name }) => name), ...undeclared.items].sort(),
    hasMore: declared.hasMore || undeclared.hasMore,
  };
}

/** Names that are searched for a similar one. */
const MAX_SEARCHED = 10_000;
/** A list that could not be read, such as by an administrator of some namespaces only: it rules no name out. */
const UNREAD: Listed<string> = { items: [], hasMore: true };

/** @throws Outcome if the tenant has no namespace of this name, with the most similar one. */
export async function requireNamespace(
  client: Pick<TenantAdmin, "listNamespaces" | "listUndeclaredNamespaces">,
  call: CallOptions,
  name: string,
): Promise<void> {
  requireOneOf("namespace", name, await namespaceNames(client, call, MAX_SEARCHED).catch(() => UNREAD));
}

/**
 * Checks the namespace or the tenant that a command's arguments or options name, as far as its client can list them.
 *
 * @throws Outcome if there is none of this name, with the most similar one.
 */
export async function requireNames(client: object, call: CallOptions, made: Command): Promise<void> {
  const given = (name: string): unknown => {
    const index = made.registeredArguments.findIndex((argument) => argument.name() === name);
    return index === -1 ? made.opts()[name] : made.processedArgs[index];
  };
  const [namespace, tenant] = [given("namespace"), given("tenant")];
  if (typeof namespace === "string" && isTenantAdmin(client)) await requireNamespace(client, call, namespace);
  if (typeof tenant === "string" && isOperator(client)) {
    const tenants = await collectPages(MAX_SEARCHED, "tenants", (page) => client.listTenants(page, call))
      .then(({ items, hasMore }) => ({ items: items.map(({ name }) => name), hasMore }))
      .catch(() => UNREAD);
    requireOneOf("tenant", tenant, tenants);
  }
}

function isTenantAdmin(client: object): client is TenantAdmin {
  return "listNamespaces" in client;
}

function isOperator(client: object): client is Operator {
  return "listTenants" in client;
}

function requireOneOf(kind: string, name: string, { items, hasMore }: Listed<string>): void {
  if (hasMore || items.includes(name)) return;
  throw new Outcome(EXIT.notFound, `There is no ${kind} ${name}.${didYouMean(name, items)}`);
}
