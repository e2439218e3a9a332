import { create } from "@bufbuild/protobuf";
import type { Actor } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { Refusal } from "../../domain/refusal.ts";
import type { ApiKeyResource } from "../../domain/tenant.ts";
import { RevokeOperatorApiKeyResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { RevokeApiKeyResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { administeredTenant } from "../own-tenant.ts";
import type { OperatorRpc, TenantRpc } from "../services.ts";
import {
  API_KEY_COLUMNS,
  apiKeyMessage,
  apiKeySnapshot,
  apiKeyTarget,
  OF_OPERATORS,
  OF_TENANT,
} from "./api-keys.ts";

/** Revokes a key of the caller's tenant. */
export const revokeApiKey: TenantRpc<"revokeApiKey"> = async ({ id }, call, { pool, changes }) => {
  const { id: tenantId } = administeredTenant(call);
  const ended = { action: "RevokeApiKey", tenantId, id };
  const key = await pool.of(call).transaction((transaction) => endApiKey(transaction, call, ended));
  changes.apiKeyChanged(id);
  return create(RevokeApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
};

/** Revokes a key of operators. */
export const revokeOperatorApiKey: OperatorRpc<"revokeOperatorApiKey"> = async ({ id }, call, parts) => {
  const { pool, changes } = parts;
  const ended = { action: "RevokeOperatorApiKey", tenantId: undefined, id };
  const key = await pool.transaction((transaction) => endApiKey(transaction, call, ended));
  changes.apiKeyChanged(id);
  return create(RevokeOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
};

/** The ids that `access/api-key.ts` makes. */
const ID_PATTERN = /^[a-z0-9]{16}$/;

/**
 * Revokes a key of a tenant, or an operator's, with its audit event. A key that was revoked before is not changed.
 *
 * @throws Refusal API_KEY_NOT_FOUND.
 */
async function endApiKey(
  transaction: Runner,
  by: Actor,
  request: { readonly action: string; readonly tenantId: number | undefined; readonly id: string },
): Promise<ApiKeyResource> {
  const { action, tenantId, id } = request;
  const was = ID_PATTERN.test(id) ? await lockApiKey(transaction, tenantId, id) : undefined;
  if (was === undefined) throw new Refusal("API_KEY_NOT_FOUND", "There is no such API key.");
  if (was.revokedAtMs !== undefined) return was;
  const became = await storeRevocation(transaction, id);
  await recordChange(transaction, by, {
    action,
    target: apiKeyTarget(was),
    before: apiKeySnapshot(was),
    after: apiKeySnapshot(became),
  });
  return became;
}

function lockStatement(name: string, ofOwner: string) {
  return {
    name,
    text: `select ${API_KEY_COLUMNS} from api_keys where ${ofOwner} and id = $2::text for update`,
  };
}

const lockTenantsKey = lockStatement("lock_api_key", OF_TENANT);
const lockOperatorsKey = lockStatement("lock_operator_api_key", OF_OPERATORS);

/** Returns a key of a tenant, or an operator's, and locks it until the transaction ends; undefined if there is none. */
export async function lockApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  id: string,
): Promise<ApiKeyResource | undefined> {
  const statement = tenantId === undefined ? lockOperatorsKey : lockTenantsKey;
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(statement, [tenantId ?? null, id]);
  return row && fromRow<ApiKeyResource>(row);
}

const revokeApiKeyRow = {
  name: "revoke_api_key",
  text: `update api_keys set revoked_at = now() where id = $1::text returning ${API_KEY_COLUMNS}`,
};

/** Revokes a key that the transaction has locked: it is refused on every replica within 10 s. */
async function storeRevocation(transaction: Runner, id: string): Promise<ApiKeyResource> {
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(revokeApiKeyRow, [id]);
  if (row === undefined) throw new Error("a locked API key is missing");
  return fromRow<ApiKeyResource>(row);
}
