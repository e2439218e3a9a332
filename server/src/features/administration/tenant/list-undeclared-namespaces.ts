import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import { ListUndeclaredNamespacesResponseSchema } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { pageSize, scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { findNamespacesInUse } from "../store/list-namespaces-in-use.ts";
import { administeredTenant } from "./own-tenant.ts";

/** Namespaces that one statement looks at: each takes some milliseconds on Citus, which asks every shard. */
const NAMESPACES_PER_LOOK = 100;

/** Returns the RPC that lists namespaces with records and without a policy of their own. */
export function createListUndeclaredNamespaces({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"listUndeclaredNamespaces"> {
  return {
    async listUndeclaredNamespaces(request, call) {
      const { id: tenantId } = administeredTenant(call);
      const violations = new Violations();
      const scope = [tenantId, "ListUndeclaredNamespaces"];
      const size = pageSize(request.pageSize, violations);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const { items, next } = await scanUntil(size + 1, afterName, async (after: string) => {
        const found = await findNamespacesInUse(pool.of(call), tenantId, after, NAMESPACES_PER_LOOK);
        const last = found.length === NAMESPACES_PER_LOOK ? found.at(-1)?.name : undefined;
        return { items: found.flatMap(({ name, declared }) => (declared ? [] : [name])), next: last };
      });
      const names = items.slice(0, size);
      const end = items.length > size ? names.at(-1) : next;
      return create(ListUndeclaredNamespacesResponseSchema, {
        names,
        ...(end !== undefined && { nextPageToken: pageTokens.write(scope, [end]) }),
      });
    },
  };
}
