import { create } from "@bufbuild/protobuf";
import { formatApiKey, generateApiKey } from "../../core/auth/api-key.ts";
import { storedSecret } from "../../core/auth/pepper.ts";
import type { Actor } from "../../core/calls/call.ts";
import {
  MAX_API_KEY_LABEL_BYTES,
  MAX_API_KEY_NAMESPACES,
  NAMESPACE_PATTERN,
  NAMESPACE_RULE,
} from "../../core/domain/limits.ts";
import type { ApiKeyResource, TenantResource } from "../../core/domain/tenant.ts";
import { Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
import { insertApiKey } from "../../core/store/tenants/api-keys.ts";
import {
  CreateOperatorApiKeyResponseSchema,
  CreateTenantApiKeyResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { CreateApiKeyResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage } from "../../gen/onceward/v1/tenant_pb.ts";
import { apiKeyMessage, apiKeySnapshot, apiKeyTarget } from "./api-key-messages.ts";
import { recordChange } from "./audited-change.ts";
import { lockChangeableTenant } from "./operator/tenants.ts";
import type { AdministrationParts, OperatorRpcs, TenantAdminRpcs } from "./services.ts";
import { administeredTenant, lockOwnTenant } from "./tenant/own-tenant.ts";

/** Returns the RPC with which a tenant's administrator creates a key of the tenant. */
export function createCreateApiKey({
  pool,
  changes,
  pepper,
}: AdministrationParts): TenantAdminRpcs<"createApiKey"> {
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
  };
}

/** Returns the RPCs with which an operator creates a key of a tenant, and of operators. */
export function createCreateKeysAsOperator({
  pool,
  changes,
  pepper,
}: AdministrationParts): OperatorRpcs<"createTenantApiKey" | "createOperatorApiKey"> {
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
    readonly reason?: string;
  },
): Promise<{ readonly key: ApiKeyResource; readonly secret: string }> {
  const { action, tenant, terms, pepper, reason = "" } = request;
  const made = generateApiKey();
  const stored = storedSecret(made.secret, pepper);
  const key = await insertApiKey(transaction, tenant?.id, { ...terms, id: made.id }, stored);
  if (key === undefined) {
    const violations = new Violations();
    violations.add("api_key.expires_at", "must be in the future");
    violations.throwIfAny();
    throw new Error("an API key was not stored");
  }
  await recordChange(transaction, by, {
    action,
    target: apiKeyTarget(key),
    ...(tenant && { tenant }),
    reason,
    after: apiKeySnapshot(key),
  });
  return { key, secret: formatApiKey(made) };
}
