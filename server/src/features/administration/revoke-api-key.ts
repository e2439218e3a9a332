import { create } from "@bufbuild/protobuf";
import type { Actor } from "../../core/calls/call.ts";
import { Refusal } from "../../core/domain/refusal.ts";
import type { ApiKeyResource } from "../../core/domain/tenant.ts";
import type { Runner } from "../../core/store/pool.ts";
import { lockApiKey, revokeApiKey } from "../../core/store/tenants/api-keys.ts";
import { RevokeOperatorApiKeyResponseSchema } from "../../gen/onceward/v1/operator_pb.ts";
import { RevokeApiKeyResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { apiKeyMessage, apiKeySnapshot, apiKeyTarget } from "./api-key-messages.ts";
import { recordChange } from "./audited-change.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "./services.ts";
import { administeredTenant } from "./tenant/own-tenant.ts";

/** Returns the RPC that revokes a key of the caller's tenant. */
export function createRevokeApiKey({ pool, changes }: AdministrationParts): TenantAdminRpcs<"revokeApiKey"> {
  return {
    async revokeApiKey({ id }, call) {
      const { id: tenantId } = administeredTenant(call);
      const key = await pool
        .of(call)
        .transaction((transaction) => endApiKey(transaction, call, { action: "RevokeApiKey", tenantId, id }));
      changes.apiKeyChanged(id);
      return create(RevokeApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}

/** Returns the RPC that revokes a key of operators. */
export function createRevokeOperatorApiKey({
  pool,
  changes,
}: AdministrationParts): OperatorRpcs<"revokeOperatorApiKey"> {
  return {
    async revokeOperatorApiKey({ id }, call) {
      const ended = { action: "RevokeOperatorApiKey", tenantId: undefined, id };
      const key = await pool.transaction((transaction) => endApiKey(transaction, call, ended));
      changes.apiKeyChanged(id);
      return create(RevokeOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}

/** The ids that `core/auth/api-key.ts` makes. */
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
  const became = await revokeApiKey(transaction, id);
  await recordChange(transaction, by, {
    action,
    target: apiKeyTarget(was),
    before: apiKeySnapshot(was),
    after: apiKeySnapshot(became),
  });
  return became;
}
