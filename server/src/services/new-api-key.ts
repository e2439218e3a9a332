import { digestSecret, formatApiKey, generateApiKey } from "../auth/api-key.ts";
import type { ApiKeyResource } from "../domain/api-key-resource.ts";
import type { TenantResource } from "../domain/tenant-resource.ts";
import { insertApiKey } from "../store/api-key-resources.ts";
import type { Snapshot } from "../store/audit-events.ts";
import type { Runner } from "../store/pool.ts";
import type { ApiKeyTerms } from "./api-key-messages.ts";
import { recordChange } from "./audited-change.ts";
import type { Call } from "./call.ts";
import { Violations } from "./violations.ts";

/** A key that was just made, with what only its owner may see, once. */
export interface NewApiKey {
  readonly key: ApiKeyResource;
  /** `ow_<id>_<secret>`. */
  readonly secret: string;
}

/**
 * Makes a key of a tenant that the transaction has locked, and writes down who did.
 *
 * @throws Refusal INVALID_REQUEST if it would have expired already, by the database's clock.
 */
export async function makeApiKey(
  transaction: Runner,
  call: Call,
  request: {
    readonly action: string;
    readonly tenant: TenantResource;
    readonly terms: ApiKeyTerms;
    readonly pepper: string;
  },
): Promise<NewApiKey> {
  const { action, tenant, terms, pepper } = request;
  const made = generateApiKey();
  const digest = digestSecret(made.secret, pepper);
  const key = await insertApiKey(transaction, tenant.id, { ...terms, id: made.id }, digest);
  if (key === undefined) {
    const violations = new Violations();
    violations.add("api_key.expires_at", "must be in the future");
    violations.throwIfAny();
    throw new Error("an API key that was not made");
  }
  await recordChange(transaction, call, {
    action,
    target: apiKeyTarget(key),
    tenant,
    after: apiKeySnapshot(key),
  });
  return { key, secret: formatApiKey(made) };
}

/** Names a key in an audit event. */
export function apiKeyTarget({ id }: ApiKeyResource): string {
  return `api key ${id}`;
}

/** A key for the audit. */
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
