import { create } from "@bufbuild/protobuf";
import { formatApiKey, generateApiKey } from "../../access/api-key.ts";
import type { Actor } from "../../access/call.ts";
import { storedSecret } from "../../access/pepper.ts";
import type { Runner } from "../../database/pool.ts";
import { insertApiKey, listApiKeys, lockApiKey, revokeApiKey } from "../../database/tenants/api-keys.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import {
  MAX_API_KEY_LABEL_BYTES,
  MAX_API_KEY_NAMESPACES,
  NAMESPACE_PATTERN,
  NAMESPACE_RULE,
} from "../../domain/limits.ts";
import { invalidRequest, Refusal } from "../../domain/refusal.ts";
import type { ApiKeyResource, TenantResource } from "../../domain/tenant.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import {
  CreateOperatorApiKeyResponseSchema,
  CreateTenantApiKeyResponseSchema,
  ListOperatorApiKeysResponseSchema,
  RevokeOperatorApiKeyResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import {
  CreateApiKeyResponseSchema,
  ListApiKeysResponseSchema,
  RevokeApiKeyResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage, ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { administeredTenant, lockOwnTenant } from "../own-tenant.ts";
import { listPage, type PageTokens } from "../pages.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "../services.ts";
import { lockChangeableTenant } from "../tenants/tenants.ts";

/** Returns the RPCs with which a tenant's administrator manages the tenant's keys. */
export function createTenantsApiKeys({
  pool,
  changes,
  pageTokens,
  pepper,
}: AdministrationParts): TenantAdminRpcs<"createApiKey" | "listApiKeys" | "revokeApiKey"> {
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
      const { id } = administeredTenant(call);
      return create(ListApiKeysResponseSchema, await listKeys(pool.of(call), pageTokens, id, request));
    },

    async revokeApiKey({ id }, call) {
      const { id: tenantId } = administeredTenant(call);
      const ended = { action: "RevokeApiKey", tenantId, id };
      const key = await pool.of(call).transaction((transaction) => endApiKey(transaction, call, ended));
      changes.apiKeyChanged(id);
      return create(RevokeApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}

/** Returns the RPCs with which an operator manages the keys of operators, and creates a key of a tenant. */
export function createOperatorsApiKeys({
  pool,
  changes,
  pageTokens,
  pepper,
}: AdministrationParts): OperatorRpcs<
  "createTenantApiKey" | "createOperatorApiKey" | "listOperatorApiKeys" | "revokeOperatorApiKey"
> {
  return {
    async createTenantApiKey(request, call) {
      const violations = new Violations();
      violations.name("tenant", request.tenant);
      const terms = parseApiKeyTerms(request.apiKey, violations);
      violations.throwIfAny();
      const { key, secret } = await pool.transaction(async (transaction) => {
        const tenant = await lockChangeableTenant(transaction, request.tenant);
        return makeApiKey(transaction, call, { action: "CreateTenantApiKey", tenant, terms, pepper });
      });
      changes.apiKeyChanged(key.id);
      return create(CreateTenantApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
    },

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
      return create(ListOperatorApiKeysResponseSchema, await listKeys(pool, pageTokens, undefined, request));
    },

    async revokeOperatorApiKey({ id }, call) {
      const ended = { action: "RevokeOperatorApiKey", tenantId: undefined, id };
      const key = await pool.transaction((transaction) => endApiKey(transaction, call, ended));
      changes.apiKeyChanged(id);
      return create(RevokeOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key) });
    },
  };
}

/** The fields of a key that a request chooses. */
export type ApiKeyTerms = Pick<ApiKeyResource, "role" | "label" | "namespaces" | "expiresAtMs">;

/** Parses a request for a tenant's key. Adds a violation for everything that is malformed. */
function parseApiKeyTerms(message: ApiKeyMessage | undefined, violations: Violations): ApiKeyTerms {
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
    violations.add("api_key.namespaces", `each ${NAMESPACE_RULE}`);
  }
  return {
    role: role === ApiKey_Role.TENANT_ADMIN ? "TENANT_ADMIN" : "CALLER",
    label,
    namespaces: namespaces.length === 0 ? undefined : [...new Set(namespaces)],
    expiresAtMs: violations.timestampMs("api_key.expires_at", expiresAt),
  };
}

/** Parses a request for an operator's key. Adds a violation for everything that is malformed. */
function parseOperatorKeyTerms(message: ApiKeyMessage | undefined, violations: Violations): ApiKeyTerms {
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
 * Creates a key of a tenant that the transaction has locked, or an operator's, with its audit event.
 *
 * @returns the key and its secret, `ow_<id>_<secret>`, which only its owner may see, once.
 * @throws Refusal INVALID_REQUEST if the key has expired already, by the database's clock.
 */
export async function makeApiKey(
  transaction: Runner,
  by: Actor,
  request: {
    readonly action: string;
    /** Undefined: an operator's. */
    readonly tenant: TenantResource | undefined;
    readonly terms: ApiKeyTerms;
    readonly pepper: string;
  },
): Promise<{ readonly key: ApiKeyResource; readonly secret: string }> {
  const { action, tenant, terms, pepper } = request;
  const made = generateApiKey();
  const stored = storedSecret(made.secret, pepper);
  const key = await insertApiKey(transaction, tenant?.id, { ...terms, id: made.id }, stored);
  if (key === undefined) throw invalidRequest("api_key.expires_at", "must be in the future");
  await recordChange(transaction, by, {
    action,
    target: apiKeyTarget(key),
    ...(tenant && { tenant }),
    after: apiKeySnapshot(key),
  });
  return { key, secret: formatApiKey(made) };
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
  const became = await revokeApiKey(transaction, id);
  await recordChange(transaction, by, {
    action,
    target: apiKeyTarget(was),
    before: apiKeySnapshot(was),
    after: apiKeySnapshot(became),
  });
  return became;
}

/** Returns a key without its secret. */
function apiKeyMessage(key: ApiKeyResource): ApiKeyMessage {
  return create(ApiKeySchema, {
    id: key.id,
    role: ApiKey_Role[key.role],
    label: key.label,
    namespaces: [...(key.namespaces ?? [])],
    createdAt: timestamp(key.createdAtMs),
    ...(key.expiresAtMs !== undefined && { expiresAt: timestamp(key.expiresAtMs) }),
    ...(key.revokedAtMs !== undefined && { revokedAt: timestamp(key.revokedAtMs) }),
    ...(key.lastUsedAtMs !== undefined && { lastUsedAt: timestamp(key.lastUsedAtMs) }),
  });
}

/** Returns the name of a key in audit events. */
function apiKeyTarget({ id }: ApiKeyResource): string {
  return `api key ${id}`;
}

/** Returns a key as audit events show it. */
function apiKeySnapshot(key: ApiKeyResource): Snapshot {
  const { role, label, namespaces, expiresAtMs, revokedAtMs } = key;
  return {
    role,
    label,
    namespaces,
    expiresAt: instantText(expiresAtMs),
    revokedAt: instantText(revokedAtMs),
  };
}

function instantText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
