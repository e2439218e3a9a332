import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  GetNamespaceResponseSchema,
  ListNamespacesResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../../gen/onceward/v1/tenant_pb.ts";
import { pageSize, replyPage } from "../pages.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "../services.ts";
import { findNamespaceResource, listNamespaceResources } from "../store/namespaces.ts";
import { namespaceMessage } from "../tenant-messages.ts";
import { administeredTenant, namespaceNotFound, tenantOfNamespace } from "./own-tenant.ts";

/** Returns the RPCs that read namespaces and their policies. */
export function createNamespaceHandlers({
  pool,
  pageTokens,
}: Pick<TenantAdminOptions, "pool" | "pageTokens">): TenantAdminRpcs<"getNamespace" | "listNamespaces"> {
  return {
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
      const scope = [own.id, "ListNamespaces"];
      const limit = pageSize(request.pageSize, violations);
      const [afterName = ""] = pageTokens.read(scope, request.pageToken, violations) ?? [];
      violations.throwIfAny();

      const tenant = await findTenantResource(pool.of(call), own.id);
      // The tenant was just deleted, and its namespaces with it.
      if (tenant === undefined) return create(ListNamespacesResponseSchema);
      const found = await listNamespaceResources(pool.of(call), own.id, afterName, limit + 1);
      const { messages, last } = replyPage(found, limit, NamespaceSchema, (namespace) =>
        namespaceMessage(namespace, tenant),
      );
      return create(ListNamespacesResponseSchema, {
        namespaces: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, [last.name]) }),
      });
    },
  };
}
