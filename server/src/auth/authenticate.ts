import type { Deadline } from "../domain/deadline.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import { findApiKeys, type StoredApiKey } from "../store/api-keys.ts";
import type { Pool } from "../store/pool.ts";
import { findTenantIds, findTenants } from "../store/tenants.ts";
import { type ApiKey, digestSecret, parseApiKey, sameDigest } from "./api-key.ts";
import type { TokenVerifier } from "./jwt.ts";
import { createRefreshingCache } from "./refreshing-cache.ts";

/** Tells who is calling, from the `authorization` header. */
export interface Authenticator {
  /**
   * @throws Refusal CREDENTIAL_MISSING; CREDENTIAL_INVALID, the same whether it is malformed, unknown, expired,
   *   revoked or has another secret; ISSUER_UNAVAILABLE, as TokenVerifier.
   */
  authenticate(authorization: string | undefined, deadline: Deadline): Promise<Principal>;
  /** Who it is, if it is an API key and memory knows all about it; undefined otherwise: `authenticate` tells. */
  recognize(authorization: string | undefined): Principal | undefined;
  /** A tenant was changed through this replica: its next call here follows. The others follow within 10 s. */
  tenantChanged(id: number): void;
  /** As `tenantChanged`. */
  apiKeyChanged(id: string): void;
}

/** Whoever has to follow changes of tenants and keys. */
export type ChangeListener = Pick<Authenticator, "tenantChanged" | "apiKeyChanged">;

export interface AuthenticatorOptions {
  /** Keys the digests of secrets; the same on every replica. */
  readonly pepper: string;
  /** An operator's key that isn't in the database. */
  readonly operatorKey: ApiKey | undefined;
  /** Undefined: tokens are not taken. */
  readonly tokens: TokenVerifier | undefined;
  /** Calls without a credential act as this tenant's CALLER. Undefined: they are refused. */
  readonly anonymousTenantId: number | undefined;
}

/**
 * A revoked key, a suspended tenant and a changed policy are effective everywhere within 10 s: the contract's bound, less
 * a second for a load that is under way.
 */
const MAX_AGE_MS = 9000;
const REFRESH_AFTER_MS = 4000;
const MAX_CACHED_KEYS = 20_000;
const MAX_CACHED_TENANTS = 20_000;
/** Compared with where there is no key, so that a wrong id takes as long as a wrong secret. */
const NO_DIGEST = Buffer.alloc(32);
const BEARER = /^Bearer +(\S+) *$/i;

/** @see Authenticator */
export function createAuthenticator(pool: Pool, options: AuthenticatorOptions): Authenticator {
  const aging = { maxAgeMs: MAX_AGE_MS, refreshAfterMs: REFRESH_AFTER_MS };
  const keys = createRefreshingCache<string, StoredApiKey>({
    load: (ids) => findApiKeys(pool, ids),
    maxEntries: MAX_CACHED_KEYS,
    ...aging,
  });
  const tenants = createRefreshingCache<number, Tenant>({
    load: (ids) => findTenants(pool, ids),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });
  /** A name that is free again belongs to another tenant later: the old id is gone from `tenants` by then. */
  const tenantIds = createRefreshingCache<string, number>({
    load: (names) => findTenantIds(pool, names),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });

  /** The secret that each key was last proven with: most calls come with it, and need no digest. */
  const proven = new WeakMap<StoredApiKey, Buffer>();

  function isProven(key: StoredApiKey, presented: Buffer): boolean {
    const known = proven.get(key);
    return known !== undefined && sameDigest(known, presented);
  }

  function isSecretOf(key: StoredApiKey | undefined, secret: string): boolean {
    const presented = Buffer.from(secret);
    if (key !== undefined && isProven(key, presented)) return true;
    const isRight = sameDigest(digestSecret(secret, options.pepper), key?.digest ?? NO_DIGEST);
    if (isRight && key !== undefined) proven.set(key, presented);
    return isRight;
  }

  async function liveTenant(id: number, deadline: Deadline): Promise<Tenant> {
    const tenant = await tenants.get(id, deadline);
    if (tenant === undefined) throw credentialInvalid();
    return tenant;
  }

  async function anonymous(deadline: Deadline): Promise<Principal> {
    if (options.anonymousTenantId === undefined) {
      throw new Refusal("CREDENTIAL_MISSING", "Send `authorization: Bearer <API key or token>`.");
    }
    const tenant = await liveTenant(options.anonymousTenantId, deadline);
    return { role: "CALLER", actor: "anonymous", tenant, namespaces: undefined };
  }

  async function byToken(token: string, deadline: Deadline): Promise<Principal> {
    if (options.tokens === undefined) throw credentialInvalid();
    const identity = await options.tokens.verify(token);
    if (identity.role === "OPERATOR") return identity;
    const { role, actor, tenantName, namespaces } = identity;
    const id = await tenantIds.get(tenantName, deadline);
    if (id === undefined) throw credentialInvalid();
    return { role, actor, tenant: await liveTenant(id, deadline), namespaces };
  }

  async function byApiKey(presented: ApiKey, deadline: Deadline): Promise<Principal> {
    if (presented.id === options.operatorKey?.id) {
      const digest = digestSecret(presented.secret, options.pepper);
      if (!sameDigest(digest, digestSecret(options.operatorKey.secret, options.pepper)))
        throw credentialInvalid();
      return { role: "OPERATOR", actor: presented.id };
    }
    const key = await keys.get(presented.id, deadline);
    if (!isSecretOf(key, presented.secret) || key === undefined) throw credentialInvalid();
    if (key.role === "OPERATOR" || key.tenantId === undefined) return { role: "OPERATOR", actor: key.id };
    return principalOf(key, key.role, await liveTenant(key.tenantId, deadline));
  }

  return {
    tenantChanged: tenants.drop,
    apiKeyChanged: keys.drop,
    recognize(authorization) {
      const presented = authorization === undefined ? undefined : parseApiKey(credentialOf(authorization));
      if (presented === undefined) return undefined;
      const key = keys.peek(presented.id);
      if (key === undefined || key.role === "OPERATOR" || key.tenantId === undefined) return undefined;
      if (!isProven(key, Buffer.from(presented.secret))) return undefined;
      const tenant = tenants.peek(key.tenantId);
      return tenant && principalOf(key, key.role, tenant);
    },
    async authenticate(authorization, deadline) {
      if (authorization === undefined) return anonymous(deadline);
      const credential = credentialOf(authorization);
      const apiKey = parseApiKey(credential);
      return apiKey === undefined ? byToken(credential, deadline) : byApiKey(apiKey, deadline);
    },
  };
}

function credentialOf(authorization: string): string {
  return BEARER.exec(authorization)?.[1] ?? "";
}

function principalOf(
  { id, namespaces }: StoredApiKey,
  role: "CALLER" | "TENANT_ADMIN",
  tenant: Tenant,
): Principal {
  return { role, actor: id, tenant, namespaces: namespaces && new Set(namespaces) };
}
