import { create } from "@bufbuild/protobuf";
import { formatApiKey, generateApiKey } from "../../access/api-key.ts";
import type { Actor } from "../../access/call.ts";
import { storedSecret } from "../../access/pepper.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { textArray } from "../../database/sql-arrays.ts";
import {
  MAX_API_KEY_LABEL_BYTES,
  MAX_API_KEY_NAMESPACES,
  NAMESPACE_PATTERN,
  NAMESPACE_RULE,
} from "../../domain/limits.ts";
import { invalidRequest } from "../../domain/refusal.ts";
import type { ApiKeyResource, TenantResource } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import {
  CreateOperatorApiKeyResponseSchema,
  CreateTenantApiKeyResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { CreateApiKeyResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage } from "../../gen/onceward/v1/tenant_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { administeredTenant, lockOwnTenant } from "../own-tenant.ts";
import type { OperatorRpc, TenantRpc } from "../services.ts";
import { lockChangeableTenant } from "../tenants/locked-tenant.ts";
import { API_KEY_COLUMNS, apiKeyMessage, apiKeySnapshot, apiKeyTarget } from "./api-keys.ts";

/** Creates a key of the caller's tenant. */
export const createApiKey: TenantRpc<"createApiKey"> = async (request, call, { pool, changes, pepper }) => {
  const own = administeredTenant(call);
  const terms = parseApiKeyTerms(request.apiKey);
  const { key, secret } = await pool.of(call).transaction(async (transaction) => {
    const tenant = await lockOwnTenant(transaction, own);
    return makeApiKey(transaction, call, { action: "CreateApiKey", tenant, terms, pepper });
  });
  changes.apiKeyChanged(key.id);
  return create(CreateApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
};

/** Creates a key of a tenant for an operator. */
export const createTenantApiKey: OperatorRpc<"createTenantApiKey"> = async (request, call, parts) => {
  const { pool, changes, pepper } = parts;
  const violations = new Violations();
  violations.name("tenant", request.tenant);
  const terms = parseApiKeyTerms(request.apiKey, violations);
  const { key, secret } = await pool.transaction(async (transaction) => {
    const tenant = await lockChangeableTenant(transaction, request.tenant);
    return makeApiKey(transaction, call, { action: "CreateTenantApiKey", tenant, terms, pepper });
  });
  changes.apiKeyChanged(key.id);
  return create(CreateTenantApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
};

/** Creates an operator's key. */
export const createOperatorApiKey: OperatorRpc<"createOperatorApiKey"> = async (request, call, parts) => {
  const { pool, changes, pepper } = parts;
  const terms = parseOperatorKeyTerms(request.apiKey);
  const made = { action: "CreateOperatorApiKey", tenant: undefined, terms, pepper };
  const { key, secret } = await pool.transaction((transaction) => makeApiKey(transaction, call, made));
  changes.apiKeyChanged(key.id);
  return create(CreateOperatorApiKeyResponseSchema, { apiKey: apiKeyMessage(key), secret });
};

/** The fields of a key that a request chooses. */
export type ApiKeyTerms = Pick<ApiKeyResource, "role" | "label" | "namespaces" | "expiresAtMs">;

/** Parses a request for a tenant's key. @throws Refusal INVALID_REQUEST with every violation. */
function parseApiKeyTerms(message: ApiKeyMessage | undefined, violations = new Violations()): ApiKeyTerms {
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
  const expiresAtMs = violations.timestampMs("api_key.expires_at", expiresAt);
  violations.throwIfAny();
  return {
    role: role === ApiKey_Role.TENANT_ADMIN ? "TENANT_ADMIN" : "CALLER",
    label,
    namespaces: namespaces.length === 0 ? undefined : [...new Set(namespaces)],
    expiresAtMs,
  };
}

/** Parses a request for an operator's key. @throws Refusal INVALID_REQUEST with every violation. */
function parseOperatorKeyTerms(message: ApiKeyMessage | undefined): ApiKeyTerms {
  const violations = new Violations();
  const { role = ApiKey_Role.UNSPECIFIED, label = "", namespaces = [], expiresAt } = message ?? {};
  if (role !== ApiKey_Role.UNSPECIFIED && role !== ApiKey_Role.OPERATOR) {
    violations.add("api_key.role", "must be ROLE_OPERATOR, or unset");
  }
  violations.text("api_key.label", label, { maxBytes: MAX_API_KEY_LABEL_BYTES });
  if (namespaces.length > 0) violations.add("api_key.namespaces", "must be unset for an operator's key");
  const expiresAtMs = violations.timestampMs("api_key.expires_at", expiresAt);
  violations.throwIfAny();
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

const insertApiKeyRow = {
  name: "insert_api_key",
  text: `
insert into api_keys (id, tenant_id, role, label, namespaces, expires_at, digest, pepper_mark)
select $1::text, $2::int, $3::text, $4::text, $5::text[], expires_at, $7::bytea, $8::bytea
  from (select to_timestamp($6::float8 / 1000) as expires_at) e
 where coalesce(expires_at > now(), true)
returning ${API_KEY_COLUMNS}`,
};

/**
 * Stores a new key of a tenant that the transaction has locked, or an operator's. Returns undefined if the key has expired
 * already, by the database's clock.
 */
export async function insertApiKey(
  transaction: Runner,
  tenantId: number | undefined,
  key: Pick<ApiKeyResource, "id" | "role" | "label" | "namespaces" | "expiresAtMs">,
  { digest, pepperMark }: { readonly digest: Uint8Array; readonly pepperMark: Uint8Array },
): Promise<ApiKeyResource | undefined> {
  const [row] = await transaction.run<RowOf<ApiKeyResource>>(insertApiKeyRow, [
    key.id,
    tenantId ?? null,
    key.role,
    key.label,
    key.namespaces ? textArray(key.namespaces) : null,
    key.expiresAtMs ?? null,
    digest,
    pepperMark,
  ]);
  return row && fromRow<ApiKeyResource>(row);
}
