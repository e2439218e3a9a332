import { create } from "@bufbuild/protobuf";
import { findTenantResource } from "../../database/tenants/tenants.ts";
import { GetNamespaceResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { tenantOfNamespace } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { findNamespaceResource, namespaceMessage, namespaceNotFound } from "./namespaces.ts";

/** Returns a declared namespace, with the policy in force. */
export const getNamespace: TenantRpc<"getNamespace"> = async ({ name }, call, { pool }) => {
  const own = tenantOfNamespace(name, "name", call);
  const tenant = await findTenantResource(pool.of(call), own.id);
  const namespace = await findNamespaceResource(pool.of(call), own.id, name);
  if (tenant === undefined || namespace === undefined) throw namespaceNotFound();
  return create(GetNamespaceResponseSchema, { namespace: namespaceMessage(namespace, tenant) });
};
