import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../core/store/pool.ts";
import { listApiKeys } from "../../core/store/tenants/api-keys.ts";
import { ListOperatorApiKeysResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { ListApiKeysResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { apiKeyMessage } from "./api-key-messages.ts";
import { listPage, type PageTokens } from "./pages.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "./services.ts";
import { administeredTenant } from "./tenant/own-tenant.ts";

/** Returns the RPC that lists the keys of the caller's tenant. */
export function createListApiKeys({ pool, pageTokens }: AdministrationParts): TenantAdminRpcs<"listApiKeys"> {
  return {
    async listApiKeys(request, call) {
      const { id } = administeredTenant(call);
      return create(ListApiKeysResponseSchema, await listKeys(pool.of(call), pageTokens, id, request));
    },
  };
}

/** Returns the RPC that lists the keys of operators. */
export function createListOperatorApiKeys({
  pool,
  pageTokens,
}: AdministrationParts): OperatorRpcs<"listOperatorApiKeys"> {
  return {
    async listOperatorApiKeys(request) {
      return create(ListOperatorApiKeysResponseSchema, await listKeys(pool, pageTokens, undefined, request));
    },
  };
}

/** Returns a page of the keys of a tenant, or of operators, newest first. */
async function listKeys(
  runner: Runner,
  pageTokens: PageTokens,
  tenantId: number | undefined,
  request: { readonly pageSize: number; readonly pageToken: string },
) {
  const { messages, nextPageToken } = await listPage(request, {
    pageTokens,
    scope: [tenantId, tenantId === undefined ? "ListOperatorApiKeys" : "ListApiKeys"],
    schema: ApiKeySchema,
    find: ([createdAt, id = ""], limit) =>
      listApiKeys(runner, tenantId, createdAt === undefined ? undefined : [createdAt, id], limit),
    messageOf: apiKeyMessage,
    cursorOf: ({ cursor }) => cursor,
  });
  return { apiKeys: messages, nextPageToken };
}
