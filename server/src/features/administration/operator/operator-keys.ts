import { create } from "@bufbuild/protobuf";
import { Violations } from "../../../core/messages/violations.ts";
import {
  CreateOperatorApiKeyResponseSchema,
  ListOperatorApiKeysResponseSchema,
  RevokeOperatorApiKeyResponseSchema,
} from "../../../gen/onceward/v1/operator_pb.ts";
import { apiKeyMessage, listApiKeyMessages, parseOperatorKeyTerms } from "../api-key-messages.ts";
import { endApiKey, makeApiKey } from "../new-api-key.ts";
import type { OperatorOptions, OperatorRpcs } from "../services.ts";

/** Returns the RPCs for operators' API keys. */
export function createOperatorKeyHandlers({
  pool,
  pageTokens,
  changes,
  pepper,
}: OperatorOptions): OperatorRpcs<"createOperatorApiKey" | "listOperatorApiKeys" | "revokeOperatorApiKey"> {
  return {
    async createOperatorApiKey(request, call) {
      const violations = new Violations();
      const terms = parseOperatorKeyTerms(request.apiKey, violations);
      violations.throwIfAny();
      const made = { action: "CreateOperatorApiKey", tenant: undefined, terms, pepper };
      const { key, secret } = await pool.transaction((transaction) => makeApiKey(transaction, call, made));
      changes.apiKeyChanged(key.id);
      return create(CreateOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
    },

    async listOperatorApiKeys(request) {
      const page = await listApiKeyMessages({ runner: pool, pageTokens }, undefined, request);
      return create(ListOperatorApiKeysResponseSchema, page);
    },

    async revokeOperatorApiKey({ id }, call) {
      const ended = { action: "RevokeOperatorApiKey", tenantId: undefined, id };
      const key = await pool.transaction((transaction) => endApiKey(transaction, call, ended));
      changes.apiKeyChanged(id);
      return create(RevokeOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}
