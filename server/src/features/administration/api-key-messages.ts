import { create } from "@bufbuild/protobuf";
import type { ApiKeyResource, Role } from "../../core/domain/tenant.ts";
import { timestamp } from "../../core/messages/violations.ts";
import type { Snapshot } from "../../core/store/tenants/audit-events.ts";
import { ApiKey_Role, type ApiKey as ApiKeyMessage, ApiKeySchema } from "../../gen/onceward/v1/tenant_pb.ts";

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

/** Returns the name of a key in audit events. */
export function apiKeyTarget({ id }: ApiKeyResource): string {
  return `api key ${id}`;
}

/** Returns a key as audit events show it. */
export function apiKeySnapshot({
  role,
  label,
  namespaces,
  expiresAtMs,
  revokedAtMs,
}: ApiKeyResource): Snapshot {
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
