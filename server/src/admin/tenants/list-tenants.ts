import { create } from "@bufbuild/protobuf";
import { listTenantResources } from "../../database/tenants/tenants.ts";
import { ListTenantsResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { TenantSchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { listPage } from "../pages.ts";
import type { OperatorRpc } from "../services.ts";
import { tenantMessage } from "./tenant-messages.ts";

/** Returns a page of all tenants, by name. */
export const listTenants: OperatorRpc<"listTenants"> = async (request, _call, { pool, pageTokens }) => {
  const { messages, nextPageToken } = await listPage(request, {
    pageTokens,
    scope: ["ListTenants"],
    schema: TenantSchema,
    find: ([afterName = ""], limit) => listTenantResources(pool, afterName, limit),
    messageOf: tenantMessage,
    cursorOf: ({ name }) => [name],
  });
  return create(ListTenantsResponseSchema, { tenants: messages, nextPageToken });
};
