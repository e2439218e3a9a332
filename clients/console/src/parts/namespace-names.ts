import { useQuery } from "@connectrpc/connect-query";
import { NAMESPACE_PATTERN } from "@onceward/gen/limits.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useSession } from "../session/session.ts";

/** As many as a person reads beside a field. */
const MAX_NAMES = 10;

/**
 * Returns some namespaces that begin with a text, declared or with records, by name; `isKnown`: the server has answered. Without a
 * text, and for a session that is limited to namespaces, it does not ask.
 */
export function useNamespaceNames(prefix: string) {
  const { namespaces: own } = useSession();
  const request = { namePrefix: prefix, pageSize: MAX_NAMES };
  const enabled = own.length === 0 && NAMESPACE_PATTERN.test(prefix);
  const declared = useQuery(TenantAdminService.method.listNamespaces, request, { enabled });
  const undeclared = useQuery(TenantAdminService.method.listUndeclaredNamespaces, request, { enabled });
  const names = [
    ...own.filter((name) => prefix !== "" && name.startsWith(prefix)),
    ...(declared.data?.namespaces ?? []).map(({ name }) => name),
    ...(undeclared.data?.names ?? []),
  ];
  const isKnown = !enabled || (declared.data !== undefined && undeclared.data !== undefined);
  return { names: names.sort().slice(0, MAX_NAMES), isKnown };
}
