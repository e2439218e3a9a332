import { create } from "@bufbuild/protobuf";
import { credentialInvalid } from "../../../core/domain/refusal.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  GetNamespaceResponseSchema,
  GetTenantResponseSchema,
  ListNamespacesResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import { listPage } from "../pages.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { findNamespaceResource, listNamespaceResources } from "../store/namespaces.ts";
import { namespaceMessage, tenantMessage } from "../tenant-messages.ts";
import { administeredTenant, namespaceNotFound, tenantOfNamespace } from "./own-tenant.ts";

/** Returns the RPCs that read the tenant, its namespaces and their policies. */
export function createReadPolicies({
  pool,
  pageTokens,
}: AdministrationParts): TenantAdminRpcs<"getTenant" | "getNamespace" | "listNamespaces"> {
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
      const { messages, nextPageToken } = await listPage(request, {
        pageTokens,
        scope: [own.id, "ListNamespaces"],
        schema: NamespaceSchema,
        async find([afterName = ""], limit) {
          const tenant = await findTenantResource(pool.of(call), own.id);
          // The tenant was just deleted, and its namespaces with it.
          if (tenant === undefined) return [];
          const found = await listNamespaceResources(pool.of(call), own.id, afterName, limit);
          return found.map((namespace) => ({ namespace, tenant }));
        },
        messageOf: ({ namespace, tenant }) => namespaceMessage(namespace, tenant),
        cursorOf: ({ namespace }) => [namespace.name],
      });
      return create(ListNamespacesResponseSchema, { namespaces: messages, nextPageToken });
    },
  };
}
