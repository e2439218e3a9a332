import { create } from "@bufbuild/protobuf";
import { Violations } from "../../domain/violations.ts";
import { ListUndeclaredNamespacesResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { parsePrefix, rangeOfPrefix } from "../name-prefix.ts";
import { administeredTenant } from "../own-tenant.ts";
import { pageSize, scanUntil } from "../pages.ts";
import type { TenantRpc } from "../services.ts";
import { findNamespacesInUse, NAMESPACES_PER_LOOK } from "./namespaces-in-use.ts";

/** Returns a page of the names of namespaces that have records and no policy of their own. */
export const listUndeclaredNamespaces: TenantRpc<"listUndeclaredNamespaces"> = async (
  request,
  call,
  parts,
) => {
  const { pool, pageTokens } = parts;
  const { id: tenantId } = administeredTenant(call);
  const violations = new Violations();
  const prefix = parsePrefix(request, violations);
  const range = rangeOfPrefix(prefix);
  const scope = [tenantId, "ListUndeclaredNamespaces", prefix];
  const size = pageSize(request.pageSize, violations);
  const [afterName = range.after] = pageTokens.read(scope, request.pageToken, violations) ?? [];
  violations.throwIfAny();

  const { items, next } = await scanUntil(size + 1, afterName, async (after: string) => {
    const found = await findNamespacesInUse(pool.of(call), tenantId, after, NAMESPACES_PER_LOOK);
    const own = found.filter(({ name }) => name < range.before);
    const last = own.length === NAMESPACES_PER_LOOK ? own.at(-1)?.name : undefined;
    return { items: own.flatMap(({ name, declared }) => (declared ? [] : [name])), next: last };
  });
  const names = items.slice(0, size);
  const end = items.length > size ? names.at(-1) : next;
  return create(ListUndeclaredNamespacesResponseSchema, {
    names,
    ...(end !== undefined && { nextPageToken: pageTokens.write(scope, [end]) }),
  });
};
