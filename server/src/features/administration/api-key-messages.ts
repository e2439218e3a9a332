import { create } from "@bufbuild/protobuf";
import {
  MAX_API_KEY_LABEL_BYTES,
  MAX_API_KEY_NAMESPACES,
  NAMESPACE_PATTERN,
} from "../../core/domain/limits.ts";
import type { ApiKeyResource, Role } from "../../core/domain/tenant.ts";
import { timestamp, Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
import { type ApiKeyCursor, listApiKeys } from "../../core/store/tenants/api-keys.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage, ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { type PageTokens, pageSize, replyPage } from "./pages.ts";

/** The fields of a key that a request chooses. */
export type ApiKeyTerms = Pick<ApiKeyResource, "role" | "label" | "namespaces" | "expiresAtMs">;

/** Parses a request for a tenant's key. Adds a violation for everything that is malformed. */
export function parseApiKeyTerms(message: ApiKeyMessage | undefined, violations: Violations): ApiKeyTerms {
  if (message === undefined) violations.add("api_key", "is required");
  const { role, label = "", namespaces = [], expiresAt } = message ?? {};
  if (role !== ApiKey_Role.CALLER && role !== ApiKey_Role.TENANT_ADMIN) {
    violations.add("api_key.role", "must be ROLE_CALLER or ROLE_TENANT_ADMIN");
  }
  violations.text("api_key.label", label, { maxBytes: MAX_API_KEY_LABEL_BYTES });
  if (namespaces.length > MAX_API_KEY_NAMESPACES) {
    violations.add(
      "api_key.namespaces",
      `must be at most ${MAX_API_KEY_NAMESPACES}, are ${namespaces.length}`,
    );
  }
  if (!namespaces.every((namespace) => NAMESPACE_PATTERN.test(namespace))) {
    violations.add("api_key.namespaces", `must each match ${NAMESPACE_PATTERN.source}`);
  }
  return {
    role: role === ApiKey_Role.TENANT_ADMIN ? "TENANT_ADMIN" : "CALLER",
    label,
    namespaces: namespaces.length === 0 ? undefined : [...new Set(namespaces)],
    expiresAtMs: violations.timestampMs("api_key.expires_at", expiresAt),
  };
}

/** Parses a request for an operator's key. Adds a violation for everything that is malformed. */
export function parseOperatorKeyTerms(
  message: ApiKeyMessage | undefined,
  violations: Violations,
): ApiKeyTerms {
  const { role = ApiKey_Role.UNSPECIFIED, label = "", namespaces = [], expiresAt } = message ?? {};
  if (role !== ApiKey_Role.UNSPECIFIED && role !== ApiKey_Role.OPERATOR) {
    violations.add("api_key.role", "must be ROLE_OPERATOR, or unset");
  }
  violations.text("api_key.label", label, { maxBytes: MAX_API_KEY_LABEL_BYTES });
  if (namespaces.length > 0) violations.add("api_key.namespaces", "must be unset for an operator's key");
  const expiresAtMs = violations.timestampMs("api_key.expires_at", expiresAt);
  return { role: "OPERATOR", label, namespaces: undefined, expiresAtMs };
}

/**
 * Returns a page of the keys of a tenant, or of operators, newest first.
 *
 * @throws Refusal INVALID_REQUEST with every violation.
 */
export async function listApiKeyMessages(
  { runner, pageTokens }: { readonly runner: Runner; readonly pageTokens: PageTokens },
  tenantId: number | undefined,
  request: { readonly pageSize: number; readonly pageToken: string },
): Promise<{ readonly apiKeys: ApiKeyMessage[]; readonly nextPageToken: string }> {
  const violations = new Violations();
  const scope = [tenantId, tenantId === undefined ? "ListOperatorApiKeys" : "ListApiKeys"];
  const size = pageSize(request.pageSize, violations);
  const cursor = pageTokens.read(scope, request.pageToken, violations);
  violations.throwIfAny();

  const found = await listApiKeys(runner, tenantId, cursor && cursorOf(cursor), size + 1);
  const { messages, last } = replyPage(found, size, ApiKeySchema, apiKeyMessage);
  return { apiKeys: messages, nextPageToken: last === undefined ? "" : pageTokens.write(scope, last.cursor) };
}

function cursorOf([createdAt = "", id = ""]: readonly string[]): ApiKeyCursor {
  return [createdAt, id];
}

/** The messages of roles. */
export const ROLE_MESSAGES: Readonly<Record<Role, ApiKey_Role>> = {
  CALLER: ApiKey_Role.CALLER,
  TENANT_ADMIN: ApiKey_Role.TENANT_ADMIN,
  OPERATOR: ApiKey_Role.OPERATOR,
};

/** Returns a key without its secret. */
export function apiKeyMessage(key: ApiKeyResource): ApiKeyMessage {
  return create(ApiKeySchema, {
    id: key.id,
    role: ROLE_MESSAGES[key.role],
    label: key.label,
    namespaces: [...(key.namespaces ?? [])],
    createdAt: timestamp(key.createdAtMs),
    ...(key.expiresAtMs !== undefined && { expiresAt: timestamp(key.expiresAtMs) }),
    ...(key.revokedAtMs !== undefined && { revokedAt: timestamp(key.revokedAtMs) }),
    ...(key.lastUsedAtMs !== undefined && { lastUsedAt: timestamp(key.lastUsedAtMs) }),
  });
}
