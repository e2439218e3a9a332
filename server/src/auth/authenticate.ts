import type { Deadline } from "../domain/deadline.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import { findApiKeys, type StoredApiKey } from "../store/api-keys.ts";
import type { Pool } from "../store/pool.ts";
import { createFindTenants, findTenantIds } from "../store/tenants.ts";
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

/** That a header proved a key, and whom it stands for: as long as neither the key nor the tenant was loaded anew. */
interface Proof {
  readonly key: StoredApiKey;
  readonly tenant: Tenant;
  readonly principal: Principal;
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
    load: createFindTenants(pool),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });
  /** A name that is free again belongs to another tenant later: the old id is gone from `tenants` by then. */
  const tenantIds = createRefreshingCache<string, number>({
    load: (names) => findTenantIds(pool, names),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });

  /**
   * Most calls come with a header that came before, which needs no digest. A Map finds it by a seeded hash, so that how long
   * that takes says nothing of how much of a guess is right.
   */
  const proofs = new Map<string, Proof>();

  function keepProof(authorization: string, proof: Proof): void {
    // The latest last, so that the oldest is the first to go.
    proofs.delete(authorization);
    proofs.set(authorization, proof);
    if (proofs.size <= MAX_CACHED_KEYS) return;
    for (const oldest of proofs.keys()) {
      proofs.delete(oldest);
      return;
    }
  }

  function isSecretOf(key: StoredApiKey | undefined, secret: string): boolean {
    return sameDigest(digestSecret(secret, options.pepper), key?.digest ?? NO_DIGEST);
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

  async function byApiKey(presented: ApiKey, authorization: string, deadline: Deadline): Promise<Principal> {
    if (presented.id === options.operatorKey?.id) {
      const digest = digestSecret(presented.secret, options.pepper);
      if (!sameDigest(digest, digestSecret(options.operatorKey.secret, options.pepper)))
        throw credentialInvalid();
      return { role: "OPERATOR", actor: presented.id };
    }
    const key = await keys.get(presented.id, deadline);
    const isProven = key !== undefined && proofs.get(authorization)?.key === key;
    if (!(isProven || isSecretOf(key, presented.secret)) || key === undefined) throw credentialInvalid();
    if (key.role === "OPERATOR" || key.tenantId === undefined) return { role: "OPERATOR", actor: key.id };
    const tenant = await liveTenant(key.tenantId, deadline);
    const principal = principalOf(key, key.role, tenant);
    keepProof(authorization, { key, tenant, principal });
    return principal;
  }

  return {
    tenantChanged: tenants.drop,
    apiKeyChanged: keys.drop,
    recognize(authorization) {
      const proof = authorization === undefined ? undefined : proofs.get(authorization);
      if (proof === undefined) return undefined;
      const { key, tenant, principal } = proof;
      return keys.peek(key.id) === key && tenants.peek(tenant.id) === tenant ? principal : undefined;
    },
    async authenticate(authorization, deadline) {
      if (authorization === undefined) return anonymous(deadline);
      const credential = credentialOf(authorization);
      const apiKey = parseApiKey(credential);
      return apiKey === undefined ? byToken(credential, deadline) : byApiKey(apiKey, authorization, deadline);
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
