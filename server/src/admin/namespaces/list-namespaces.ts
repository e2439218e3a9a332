import { create } from "@bufbuild/protobuf";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { MAX_DECLARED_NAMESPACES } from "../../domain/quotas.ts";
import { Violations } from "../../domain/violations.ts";
import { ListNamespacesResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { NamespaceSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { parsePrefix } from "../name-prefix.ts";
import { administeredTenant } from "../own-tenant.ts";
import { listPage } from "../pages.ts";
import type { TenantRpc } from "../services.ts";
import { countNamespaces, listNamespaceResources, namespaceMessage } from "./namespaces.ts";

/** Returns a page of the tenant's declared namespaces, and how many there are. */
export const listNamespaces: TenantRpc<"listNamespaces"> = async (request, call, { pool, pageTokens }) => {
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
};
