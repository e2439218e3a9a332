import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import type { ApiKeyResource } from "../../domain/tenant.ts";
import { ListOperatorApiKeysResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { ListApiKeysResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredTenant } from "../own-tenant.ts";
import { listPage, type PageTokens } from "../pages.ts";
import type { OperatorRpc, TenantRpc } from "../services.ts";
import { API_KEY_COLUMNS, apiKeyMessage, OF_OPERATORS, OF_TENANT } from "./api-keys.ts";

/** Returns a page of the keys of the caller's tenant. */
export const listApiKeys: TenantRpc<"listApiKeys"> = async (request, call, { pool, pageTokens }) => {
  const { id } = administeredTenant(call);
  return create(ListApiKeysResponseSchema, await listKeys(pool.of(call), pageTokens, id, request));
};

/** Returns a page of the keys of operators. */
export const listOperatorApiKeys: OperatorRpc<"listOperatorApiKeys"> = async (
  request,
  _call,
  { pool, pageTokens },
) => create(ListOperatorApiKeysResponseSchema, await listKeys(pool, pageTokens, undefined, request));

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
    find: ([createdAt = "infinity", id = ""], limit) =>
      listKeyResources(runner, tenantId, [createdAt, id], limit),
    messageOf: apiKeyMessage,
    cursorOf: ({ cursor }) => cursor,
  });
  return { apiKeys: messages, nextPageToken };
}

/** A position in the list of keys: when the key was created, to the microsecond, and its id. */
type ApiKeyCursor = readonly [createdAt: string, id: string];

function listStatement(name: string, ofOwner: string) {
  return {
    name,
    text: `
select ${API_KEY_COLUMNS}, to_jsonb(created_at) #>> '{}' as "createdAt"
  from api_keys k
 where ${ofOwner}
   and (k.created_at, k.id) < ($2::timestamptz, $3::text)
 order by k.created_at desc, k.id desc
 limit $4::int`,
  };
}

const listTenantsKeys = listStatement("list_api_keys", OF_TENANT);
const listOperatorsKeys = listStatement("list_operator_api_keys", OF_OPERATORS);

/**
 * Returns at most `limit` keys of a tenant, or of operators, newest first, after a cursor, each with its own. Revoked and
 * expired keys are included.
 */
export async function listKeyResources(
  runner: Runner,
  tenantId: number | undefined,
  after: ApiKeyCursor,
  limit: number,
): Promise<readonly (ApiKeyResource & { readonly cursor: ApiKeyCursor })[]> {
  const statement = tenantId === undefined ? listOperatorsKeys : listTenantsKeys;
  const rows = await runner.run<RowOf<ApiKeyResource> & { readonly createdAt: string }>(statement, [
    ...[tenantId ?? null, ...after, limit],
  ]);
  return rows.map(({ createdAt, ...row }) => ({
    ...fromRow<ApiKeyResource>(row),
    cursor: [createdAt, row.id],
  }));
}
