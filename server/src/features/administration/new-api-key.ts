import { formatApiKey, generateApiKey } from "../../core/auth/api-key.ts";
import { storedSecret } from "../../core/auth/pepper.ts";
import type { Actor } from "../../core/calls/call.ts";
import { Refusal } from "../../core/domain/refusal.ts";
import type { ApiKeyResource, TenantResource } from "../../core/domain/tenant.ts";
import { Violations } from "../../core/messages/violations.ts";
import type { Runner } from "../../core/store/pool.ts";
import { insertApiKey, lockApiKey, revokeApiKey } from "../../core/store/tenants/api-keys.ts";
import type { Snapshot } from "../../core/store/tenants/audit-events.ts";
import type { ApiKeyTerms } from "./api-key-messages.ts";
import { recordChange } from "./audited-change.ts";

/** The ids that `core/auth/api-key.ts` makes. */
const ID_PATTERN = /^[a-z0-9]{16}$/;

/** A new key with its secret, which only its owner may see, once. */
export interface NewApiKey {
  readonly key: ApiKeyResource;
  /** `ow_<id>_<secret>`. */
  readonly secret: string;
}

/**
 * Creates a key of a tenant that the transaction has locked, or an operator's, with its audit event.
 *
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
): Promise<NewApiKey> {
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

/**
 * Revokes a key of a tenant, or an operator's, with its audit event. A key that was revoked before is not changed.
 *
 * @throws Refusal API_KEY_NOT_FOUND.
 */
export async function endApiKey(
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

/** Returns the name of a key in audit events. */
function apiKeyTarget({ id }: ApiKeyResource): string {
  return `api key ${id}`;
}

/** Returns a key as audit events show it. */
function apiKeySnapshot({ role, label, namespaces, expiresAtMs, revokedAtMs }: ApiKeyResource): Snapshot {
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
