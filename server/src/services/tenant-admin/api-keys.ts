import { create } from "@bufbuild/protobuf";
import { Refusal } from "../../domain/refusal.ts";
import {
  CreateApiKeyResponseSchema,
  ListApiKeysResponseSchema,
  RevokeApiKeyResponseSchema,
  type TenantAdminService,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { type ApiKeyPlace, listApiKeys, lockApiKey, revokeApiKey } from "../../store/api-key-resources.ts";
import { apiKeyMessage, parseApiKeyTerms } from "../api-key-messages.ts";
import { recordChange } from "../audited-change.ts";
import type { Handlers } from "../call.ts";
import { apiKeySnapshot, apiKeyTarget, makeApiKey } from "../new-api-key.ts";
import { pageSize } from "../page-tokens.ts";
import { replyPage } from "../reply-pages.ts";
import { Violations } from "../violations.ts";
import { administeredTenant, lockOwnTenant } from "./own-tenant.ts";
import type { TenantAdminOptions } from "./tenant-admin.ts";

/** What an id looks like, as `auth/api-key.ts` makes it. */
const ID_PATTERN = /^[a-z0-9]{16}$/;

/** The RPCs about a tenant's API keys. */
export function createApiKeyHandlers({
  pool,
  pageTokens,
  changes,
  pepper,
}: TenantAdminOptions): Pick<
  Handlers<typeof TenantAdminService>,
  "createApiKey" | "listApiKeys" | "revokeApiKey"
> {
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
      const own = administeredTenant(call);
      const violations = new Violations();
      const scope = [own.id, "ListApiKeys"];
      const size = pageSize(request.pageSize, violations);
      const cursor = pageTokens.read(scope, request.pageToken, violations);
      violations.throwIfAny();

      const found = await listApiKeys(pool.of(call), own.id, cursor && placeOf(cursor), size + 1);
      const { messages, last } = replyPage(found, size, ApiKeySchema, apiKeyMessage);
      return create(ListApiKeysResponseSchema, {
        apiKeys: messages,
        ...(last && { nextPageToken: pageTokens.write(scope, last.place) }),
      });
    },

    async revokeApiKey({ id }, call) {
      const own = administeredTenant(call);
      if (!ID_PATTERN.test(id)) throw notFound();
      const key = await pool.of(call).transaction(async (transaction) => {
        const was = await lockApiKey(transaction, own.id, id);
        if (was === undefined) throw notFound();
        if (was.revokedAtMs !== undefined) return was;
        const became = await revokeApiKey(transaction, id);
        await recordChange(transaction, call, {
          action: "RevokeApiKey",
          target: apiKeyTarget(was),
          before: apiKeySnapshot(was),
          after: apiKeySnapshot(became),
        });
        return became;
      });
      changes.apiKeyChanged(id);
      return create(RevokeApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}

function placeOf([createdAt = "", id = ""]: readonly string[]): ApiKeyPlace {
  return [createdAt, id];
}

function notFound(): Refusal {
  return new Refusal("API_KEY_NOT_FOUND", "The tenant has no such API key.");
}
