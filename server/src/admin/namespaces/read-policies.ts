import { create } from "@bufbuild/protobuf";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { MAX_DECLARED_NAMESPACES } from "../../domain/quotas.ts";
import { credentialInvalid } from "../../domain/refusal.ts";
import { Violations } from "../../domain/violations.ts";
import {
  GetNamespaceResponseSchema,
  GetTenantResponseSchema,
  ListNamespacesResponseSchema,
  ListUndeclaredNamespacesResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { rangeOfPrefix } from "../name-prefix.ts";
import { administeredTenant, namespaceNotFound, tenantOfNamespace } from "../own-tenant.ts";
import { listPage, pageSize, scanUntil } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { namespaceMessage, tenantMessage } from "../tenants/tenant-messages.ts";
import { findNamespacesInUse, NAMESPACES_PER_LOOK } from "./list-namespaces-in-use.ts";
import { countNamespaces, findNamespaceResource, listNamespaceResources } from "./namespaces.ts";

/** Returns the RPCs that read the tenant, and its namespaces with and without a policy of their own. */
export function createReadPolicies({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<
  "getTenant" | "getNamespace" | "listNamespaces" | "listUndeclaredNamespaces"
> {
  return {
    async getTenant(_request, call) {
      const tenant = await findTenantResource(pool.of(call), administeredTenant(call).id);
      if (tenant === undefined) throw credentialInvalid();
      return create(GetTenantResponseSchema, { tenant: tenantMessage(tenant) });
    },

    async getNamespace({ name }, call) {
      const own = tenantOfNamespace(name, "name", call);
      const tenant = await findTenantResource(pool.of(call), own.id);
      const namespace = await findNamespaceResource(pool.of(call), own.id, name);
      if (tenant === undefined || namespace === undefined) throw namespaceNotFound();
      return create(GetNamespaceResponseSchema, { namespace: namespaceMessage(namespace, tenant) });
    },

    async listNamespaces(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const prefix = parsePrefix(request, violations);
      const { messages, nextPageToken } = await listPage(
        request,
        {
          pageTokens,
          scope: [own.id, "ListNamespaces", prefix],
          schema: NamespaceSchema,
          async find([afterName = ""], limit) {
            const tenant = await findTenantResource(pool.of(call), own.id);
            // The tenant was just deleted, and its namespaces with it.
            if (tenant === undefined) return [];
            const found = await listNamespaceResources(pool.of(call), own.id, afterName, limit, prefix);
            return found.map((namespace) => ({ namespace, tenant }));
          },
          messageOf: ({ namespace, tenant }) => namespaceMessage(namespace, tenant),
          cursorOf: ({ namespace }) => [namespace.name],
        },
        violations,
      );
      const totalSize = await countNamespaces(pool.of(call), own.id, MAX_DECLARED_NAMESPACES, prefix);
      return create(ListNamespacesResponseSchema, { namespaces: messages, nextPageToken, totalSize });
    },

    async listUndeclaredNamespaces(request, call) {
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
    },
  };
}

/** Parses the text with which names begin. Adds a violation if no name begins with it. */
function parsePrefix({ namePrefix }: { readonly namePrefix: string }, violations: Violations): string {
  if (namePrefix !== "") violations.name("name_prefix", namePrefix);
  return namePrefix;
}
