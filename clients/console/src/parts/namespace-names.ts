import { useQuery } from "@connectrpc/connect-query";
import { NAMESPACE_PATTERN } from "@onceward/gen/limits.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { similarName } from "@onceward/words/similar-names";
import { useSession } from "../session/session.ts";

/** As many as a person reads beside a field. */
const MAX_NAMES = 10;
/** The server's largest page. */
const MAX_PAGE = 1_000;

/** Returns the first namespaces by name: the declared ones, and those that only have records. Unless it is enabled, nothing is read. */
export function useFirstNamespaces(request: { namePrefix?: string; pageSize: number }, enabled: boolean) {
  const declared = useQuery(TenantAdminService.method.listNamespaces, request, { enabled });
  const undeclared = useQuery(TenantAdminService.method.listUndeclaredNamespaces, request, { enabled });
  return {
    lists: enabled ? [declared, undeclared] : [],
    declared: declared.data?.namespaces.map(({ name }) => name) ?? [],
    undeclared: undeclared.data?.names ?? [],
  };
}

/** Returns the function that tells which declared namespace an undeclared name probably misspells. Nothing is read unless `isAsked`. */
export function useSimilarNames(isAsked = true): (name: string) => string | undefined {
  const enabled = useSession().namespaces.length === 0 && isAsked;
  const { data } = useQuery(TenantAdminService.method.listNamespaces, { pageSize: MAX_PAGE }, { enabled });
  const declared = data?.namespaces.map(({ name }) => name) ?? [];
  return (name) => (declared.includes(name) ? undefined : similarName(name, declared));
}

/**
 * Returns some namespaces that begin with a text, declared or with records, by name; `isKnown`: the server has answered. Without a
 * text, and for a session that is limited to namespaces, it does not ask.
 */
export function useNamespaceNames(prefix: string) {
  const { namespaces: own } = useSession();
  const enabled = own.length === 0 && NAMESPACE_PATTERN.test(prefix);
  const first = useFirstNamespaces({ namePrefix: prefix, pageSize: MAX_NAMES }, enabled);
  const allowed = own.filter((name) => prefix !== "" && name.startsWith(prefix));
  const names = [...allowed, ...first.declared, ...first.undeclared].sort();
  return { names: names.slice(0, MAX_NAMES), isKnown: first.lists.every(({ data }) => data !== undefined) };
}
