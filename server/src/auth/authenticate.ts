import type { Deadline } from "../domain/deadline.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import type { Pool } from "../store/pool.ts";
import type { KnownApiKey } from "../store/tenants/api-keys.ts";
import { createFindTenants, findTenantIds } from "../store/tenants/tenants.ts";
import { type ApiKey, digestSecret, sameDigest } from "./api-key.ts";
import { parseAuthorization, presumeApiKey } from "./authorization.ts";
import type { TokenVerifier } from "./jwt.ts";
import { createKnownKeys, type LoadedKey } from "./known-keys.ts";
import { createRefreshingCache } from "./refreshing-cache.ts";

/** Tells who is calling, from the `authorization` header. */
export interface Authenticator {
  /**
   * @throws Refusal CREDENTIAL_MISSING; CREDENTIAL_INVALID, the same whether it is malformed, unknown, expired,
   *   revoked or has another secret; ISSUER_UNAVAILABLE, as TokenVerifier.
   */
  authenticate(authorization: string | undefined, deadline: Deadline): Promise<Principal>;
  /** Who it is, if it is an API key and memory knows all about it; undefined otherwise: `authenticate` tells. */
  findVerified(authorization: string | undefined): Principal | undefined;
  /** A tenant was changed through this replica: its next call here follows. The others follow within 10 s. */
  tenantChanged(id: number): void;
  /** As `tenantChanged`. */
  apiKeyChanged(id: string): void;
  /** The database was restored, or is another one: drops everything that is known of keys and tenants. */
  databaseChanged(): void;
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
  readonly anonymousTenant: string | undefined;
  /** How old what memory knows of keys and tenants may be, in milliseconds. */
  readonly maxAgeMs?: number | undefined;
}

/**
 * A revoked key, a suspended tenant and a changed policy are effective everywhere within 10 s: the contract's bound, less
 * a second for a load that is under way.
 */
const MAX_AGE_MS = 9000;
/** The rest of the contract's bound: what is decided by a principal is decided this long after MAX_AGE_MS at the latest. */
const DECISION_MS = 1000;
const REFRESH_AFTER_MS = 4000;
const MAX_CACHED_TENANTS = 20_000;
/** Compared with where there is no key, so that a wrong id takes as long as a wrong secret. */
const NO_DIGEST = Buffer.alloc(32);

/** @see Authenticator */
export function createAuthenticator(pool: Pool, options: AuthenticatorOptions): Authenticator {
  const { pepper, operatorKey, maxAgeMs = MAX_AGE_MS } = options;
  const aging = { maxAgeMs, refreshAfterMs: REFRESH_AFTER_MS };
  const keys = createKnownKeys(pool, aging);
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

  /** Until when something may be decided by what the database said at a moment. */
  function goodUntilMs(askedAtMs: number): number {
    return askedAtMs + maxAgeMs + DECISION_MS;
  }

  async function liveTenant(id: number, deadline: Deadline): Promise<Tenant> {
    const tenant = await tenants.get(id, deadline);
    if (tenant === undefined) throw credentialInvalid();
    return tenant;
  }

  /** As read together with its key, or after it: after a restore the id of a tenant may be another one's. */
  async function tenantOfKey(
    { id, tenantUid }: KnownApiKey,
    tenantId: number,
    deadline: Deadline,
  ): Promise<Tenant> {
    const tenant = await liveTenant(tenantId, deadline);
    if (tenant.uid === tenantUid) return tenant;
    tenants.drop(tenantId);
    keys.drop(id);
    const reread = await liveTenant(tenantId, deadline);
    if (reread.uid !== tenantUid) throw credentialInvalid();
    return reread;
  }

  async function tenantNamed(name: string, deadline: Deadline): Promise<Tenant> {
    const id = await tenantIds.get(name, deadline);
    if (id === undefined) throw credentialInvalid();
    const tenant = await liveTenant(id, deadline);
    // The id may have been given out again after a restore, to a tenant of another name.
    if (tenant.name !== name) throw credentialInvalid();
    return tenant;
  }

  async function anonymous(deadline: Deadline): Promise<Principal> {
    if (options.anonymousTenant === undefined) {
      throw new Refusal("CREDENTIAL_MISSING", "Send `authorization: Bearer <API key or token>`.");
    }
    const tenant = await tenantNamed(options.anonymousTenant, deadline);
    return {
      role: "CALLER",
      actor: "anonymous",
      tenant,
      namespaces: undefined,
      goodUntilMs: goodUntilMs(tenant.cacheEpoch.askedAtMs),
    };
  }

  async function byToken(token: string, deadline: Deadline): Promise<Principal> {
    if (options.tokens === undefined) throw credentialInvalid();
    const identity = await options.tokens.verify(token);
    if (identity.role === "OPERATOR") return { ...identity, goodUntilMs: goodUntilMs(performance.now()) };
    const { role, actor, tenantName, namespaces } = identity;
    const tenant = await tenantNamed(tenantName, deadline);
    return { role, actor, tenant, namespaces, goodUntilMs: goodUntilMs(tenant.cacheEpoch.askedAtMs) };
  }

  async function byApiKey({ id, secret }: ApiKey, deadline: Deadline): Promise<Principal> {
    if (id === operatorKey?.id) {
      if (!sameDigest(digestSecret(secret, pepper), digestSecret(operatorKey.secret, pepper)))
        throw credentialInvalid();
      return { role: "OPERATOR", actor: id, goodUntilMs: Number.POSITIVE_INFINITY };
    }
    const loaded = await keys.get(id, deadline);
    if (loaded === undefined) {
      sameDigest(digestSecret(secret, pepper), NO_DIGEST);
      throw credentialInvalid();
    }
    if (!loaded.isSecret(secret, pepper)) throw credentialInvalid();
    return byLoadedKey(loaded, deadline);
  }

  async function byLoadedKey(loaded: LoadedKey, deadline: Deadline): Promise<Principal> {
    const { id, role, tenantId, namespaces, askedAtMs, endsAtMs } = loaded.key;
    if (role === "OPERATOR" || tenantId === undefined) {
      return {
        role: "OPERATOR",
        actor: id,
        goodUntilMs: Math.min(goodUntilMs(askedAtMs), endsAtMs),
      };
    }
    const tenant = await tenantOfKey(loaded.key, tenantId, deadline);
    return loaded.standsFor({
      role,
      actor: id,
      tenant,
      namespaces: namespaces && new Set(namespaces),
      goodUntilMs: Math.min(goodUntilMs(Math.min(askedAtMs, tenant.cacheEpoch.askedAtMs)), endsAtMs),
    });
  }

  return {
    tenantChanged: tenants.drop,
    apiKeyChanged: keys.drop,
    databaseChanged() {
      for (const cache of [keys, tenants, tenantIds]) cache.clear();
    },
    findVerified(authorization) {
      const presented = authorization === undefined ? undefined : presumeApiKey(authorization);
      if (presented === undefined) return undefined;
      const nowMs = performance.now();
      const principal = keys.peek(presented.id, nowMs)?.findVerified(presented.secret);
      if (principal === undefined || principal.role === "OPERATOR") return undefined;
      return tenants.peek(principal.tenant.id, nowMs) === principal.tenant ? principal : undefined;
    },
    async authenticate(authorization, deadline) {
      if (authorization === undefined) return anonymous(deadline);
      const credential = parseAuthorization(authorization);
      switch (credential?.kind) {
        case undefined:
          throw credentialInvalid();
        case "apiKey":
          return byApiKey(credential.apiKey, deadline);
        case "token":
          return byToken(credential.token, deadline);
      }
    },
  };
}
