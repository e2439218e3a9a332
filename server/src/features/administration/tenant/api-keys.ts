import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import {
  CreateApiKeyResponseSchema,
  ListApiKeysResponseSchema,
  RevokeApiKeyResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import { apiKeyMessage, listApiKeyMessages, parseApiKeyTerms } from "../api-key-messages.ts";
import { endApiKey, makeApiKey } from "../new-api-key.ts";
import type { TenantAdminOptions, TenantAdminRpcs } from "../services.ts";
import { administeredTenant, lockOwnTenant } from "./own-tenant.ts";

/** Returns the RPCs for a tenant's API keys. */
export function createApiKeyHandlers({
  pool,
  pageTokens,
  changes,
  pepper,
}: TenantAdminOptions): TenantAdminRpcs<"createApiKey" | "listApiKeys" | "revokeApiKey"> {
  return {
    async createApiKey(request, call) {
      const own = administeredTenant(call);
      const violations = new Violations();
      const terms = parseApiKeyTerms(request.apiKey, violations);
      violations.throwIfAny();
      const { key, secret } = await pool.of(call).transaction(async (transaction) => {
        const tenant = await lockOwnTenant(transaction, own);
        return makeApiKey(transaction, call, { action: "CreateApiKey", tenant, terms, pepper });
      });
      changes.apiKeyChanged(key.id);
      return create(CreateApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
    },

    async listApiKeys(request, call) {
      const { id: tenantId } = administeredTenant(call);
      const page = await listApiKeyMessages({ runner: pool.of(call), pageTokens }, tenantId, request);
      return create(ListApiKeysResponseSchema, page);
    },

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
