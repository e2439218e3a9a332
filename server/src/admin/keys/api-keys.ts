import { create } from "@bufbuild/protobuf";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import type { ApiKeyResource } from "../../domain/tenant.ts";
import { timestamp } from "../../domain/violations.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage, ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";

/** An API key's columns, as administrators and operators see it: `RowOf<ApiKeyResource>`. */
export const API_KEY_COLUMNS = `
  id, role, label, namespaces, extract(epoch from created_at) * 1000 as "createdAtMs",
  extract(epoch from expires_at) * 1000 as "expiresAtMs", extract(epoch from revoked_at) * 1000 as "revokedAtMs",
  extract(epoch from last_used_at) * 1000 as "lastUsedAtMs"`;

/** Conditions for the keys of a tenant and of operators: each is a range of an index. */
export const OF_TENANT = "tenant_id = $1::int";
export const OF_OPERATORS = "tenant_id is null and $1::int is null";

/** Returns a key without its secret. */
export function apiKeyMessage(key: ApiKeyResource): ApiKeyMessage {
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
export function apiKeyTarget({ id }: ApiKeyResource): string {
  return `api key ${id}`;
}

/** Returns a key as audit events show it. */
export function apiKeySnapshot(key: ApiKeyResource): Snapshot {
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
