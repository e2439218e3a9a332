import type { Deadline } from "../domain/operation.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import type { Pool } from "../store/pool.ts";
import { type KnownApiKey, storeKeyDigest } from "../store/tenants/api-keys.ts";
import { createFindTenants, findTenantIds } from "../store/tenants/tenants.ts";
import { type ApiKey, digestSecret, parseAuthorization, sameDigest } from "./api-key.ts";
import {
  type CachedApiKey,
  createApiKeyCache,
  createRefreshingCache,
  MAX_AGE_MS,
  REFRESH_AFTER_MS,
  type RefreshingCacheOptions,
  sliceApiKey,
} from "./credential-cache.ts";
import type { TokenVerifier, VerifiedIdentity } from "./jwt.ts";
import { type Peppers, pepperMark, storedSecret } from "./pepper.ts";
import type { KnownSession, SessionFinder } from "./sessions.ts";

/** Identifies callers by their `authorization` header, or by the cookie of a session of the console. */
export type Authenticator = ReturnType<typeof createAuthenticator>;

export interface AuthenticatorOptions {
  readonly peppers: Peppers;
  /** An operator's key that is not stored in the database. */
  readonly operatorKey: ApiKey | undefined;
  /** Undefined: tokens are refused. */
  readonly tokens: TokenVerifier | undefined;
  /** The sessions of the console. Undefined: it is off. */
  readonly sessions: SessionFinder | undefined;
  /** Calls without a credential act as a CALLER of this tenant. Undefined: they are refused. */
  readonly anonymousTenant: string | undefined;
  /** Maximum age of cached keys and tenants, in milliseconds. */
  readonly maxAgeMs?: number | undefined;
  /**
   * Receives the id of a stored key that was just verified. A key in use is reported at least each time that its cache
   * entry is renewed, not for each call.
   */
  readonly onKeyUsed?: (id: string) => void;
}

/** The rest of the contract's bound: a principal may decide a call until this long after MAX_AGE_MS. */
const DECISION_MS = 1000;
const MAX_CACHED_TENANTS = 20_000;
/** Compared with if the key does not exist, so that a wrong id takes as long as a wrong secret. */
const NO_DIGEST = Buffer.alloc(32);

type Aging = Pick<RefreshingCacheOptions<number, Tenant>, "maxAgeMs" | "refreshAfterMs">;

/**
 * Caches tenants by id and by name. `get` and `named` refuse a tenant that does not exist with
 * CREDENTIAL_INVALID.
 */
function createTenantCache(pool: Pool, aging: Aging) {
  const byId = createRefreshingCache<number, Tenant>({
    load: createFindTenants(pool),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });
  /** A tenant's name can be used again after a deletion. By then `byId` no longer holds the old id. */
  const ids = createRefreshingCache<string, number>({
    load: (names) => findTenantIds(pool, names),
    maxEntries: MAX_CACHED_TENANTS,
    ...aging,
  });

  async function get(id: number, deadline: Deadline): Promise<Tenant> {
    const tenant = await byId.get(id, deadline);
    if (tenant === undefined) throw credentialInvalid();
    return tenant;
  }

  return {
    get,
    async named(name: string, deadline: Deadline): Promise<Tenant> {
      const id = await ids.get(name, deadline);
      if (id === undefined) throw credentialInvalid();
      const tenant = await get(id, deadline);
      // After a restore, the id may belong to a tenant with another name.
      if (tenant.name !== name) throw credentialInvalid();
      return tenant;
    },
    peek: byId.peek,
    drop: byId.drop,
    clear() {
      byId.clear();
      ids.clear();
    },
  };
}

/** Creates an authenticator. */
export function createAuthenticator(pool: Pool, options: AuthenticatorOptions) {
  const { sessions, tokens, maxAgeMs = MAX_AGE_MS } = options;
  const aging = { maxAgeMs, refreshAfterMs: REFRESH_AFTER_MS };
  const keys = createApiKeyCache(pool, aging);
  const tenants = createTenantCache(pool, aging);
  /** Returns until when the result of a query may decide calls, in `performance.now()` milliseconds. */
  const goodUntilMs = (askedAtMs: number) => askedAtMs + maxAgeMs + DECISION_MS;
  const principals = { ...options, keys, tenants, goodUntilMs };
  const byApiKey = createByApiKey(pool, principals);
  const byIdentity = createByIdentity(principals);
  const bySession = createBySession(principals, byApiKey.ofSession);
  const anonymous = createAnonymous(principals);

  return {
    /**
     * Drops a tenant that was changed through this replica, so that its next call here sees the change. Other
     * replicas: within 10 s.
     */
    tenantChanged: tenants.drop,
    /** Drops an API key, as `tenantChanged` drops a tenant. */
    apiKeyChanged: keys.drop,
    /** Drops all keys and tenants, after the database was restored or replaced. */
    databaseChanged(): void {
      keys.clear();
      tenants.clear();
      sessions?.clear();
    },
    /**
     * Returns the principal of an API key that was verified recently and whose cached key and tenant are fresh;
     * undefined otherwise: call `authenticate` then.
     */
    cachedPrincipal(authorization: string | undefined): Principal | undefined {
      const presented = authorization === undefined ? undefined : sliceApiKey(authorization);
      if (presented === undefined) return undefined;
      const nowMs = performance.now();
      const principal = keys.peek(presented.id, nowMs)?.cachedPrincipal(presented.secret);
      if (principal === undefined || principal.role === "OPERATOR") return undefined;
      return tenants.peek(principal.tenant.id, nowMs) === principal.tenant ? principal : undefined;
    },
    /**
     * Returns the principal of a credential.
     *
     * @throws Refusal CREDENTIAL_MISSING; CREDENTIAL_INVALID, with the same text for a malformed, unknown, expired or revoked
     *   credential and for a wrong secret; ISSUER_UNAVAILABLE, as TokenVerifier.
     */
    async authenticate(authorization: string | undefined, deadline: Deadline): Promise<Principal> {
      if (authorization === undefined) return anonymous(deadline);
      const credential = parseAuthorization(authorization);
      switch (credential?.kind) {
        case undefined:
          throw credentialInvalid();
        case "apiKey":
          return byApiKey.ofSecret(credential.apiKey, deadline);
        case "token":
          if (tokens === undefined) throw credentialInvalid();
          return byIdentity(await tokens.verify(credential.token), deadline);
      }
    },
    /**
     * Returns the principal of a token's identity.
     *
     * @throws Refusal CREDENTIAL_INVALID if its tenant does not exist.
     */
    authenticateIdentity: byIdentity,
    /**
     * Returns the principal of a session of the console: the one that its API key or token would give.
     *
     * @throws Refusal CREDENTIAL_INVALID if the session or its credential has ended.
     */
    async authenticateSession(cookie: string, deadline: Deadline): Promise<Principal> {
      if (sessions === undefined) throw credentialInvalid();
      const session = await sessions.find(cookie, deadline);
      const principal = await bySession(session, deadline);
      const endsAtMs = Math.min(goodUntilMs(session.askedAtMs), session.endsAtMs);
      return { ...principal, goodUntilMs: Math.min(principal.goodUntilMs, endsAtMs) };
    },
  };
}

/** What principals are made from. */
interface Principals extends AuthenticatorOptions {
  readonly keys: ReturnType<typeof createApiKeyCache>;
  readonly tenants: ReturnType<typeof createTenantCache>;
  readonly goodUntilMs: (askedAtMs: number) => number;
}

/** Returns the principal of calls without a credential. */
function createAnonymous({ anonymousTenant, tenants, goodUntilMs }: Principals) {
  return async (deadline: Deadline): Promise<Principal> => {
    if (anonymousTenant === undefined) {
      throw new Refusal("CREDENTIAL_MISSING", "Send `authorization: Bearer <API key or token>`.");
    }
    const tenant = await tenants.named(anonymousTenant, deadline);
    return {
      role: "CALLER",
      actor: "anonymous",
      tenant,
      namespaces: undefined,
      goodUntilMs: goodUntilMs(tenant.cacheEpoch.askedAtMs),
    };
  };
}

/** Returns the principals of verified tokens. */
function createByIdentity({ tenants, goodUntilMs }: Principals) {
  return async (identity: VerifiedIdentity, deadline: Deadline): Promise<Principal> => {
    const credential = { kind: "TOKEN", expiresAtMs: identity.expiresAtMs } as const;
    const { role, actor } = identity;
    if (role === "OPERATOR") return { role, actor, credential, goodUntilMs: goodUntilMs(performance.now()) };
    const { tenantName, namespaces } = identity;
    const tenant = await tenants.named(tenantName, deadline);
    return {
      role,
      actor,
      credential,
      tenant,
      namespaces,
      goodUntilMs: goodUntilMs(tenant.cacheEpoch.askedAtMs),
    };
  };
}

/** Returns the principals of API keys: of a presented secret, and of a session that a secret of this digest began. */
function createByApiKey(pool: Pool, parts: Principals) {
  const { keys, peppers, operatorKey, onKeyUsed } = parts;
  const pepper = peppers.current;
  const currentMark = pepperMark(pepper);

  /**
   * Stores the digest of a verified secret under the current pepper, unless it is known to be: only a use
   * shows the secret. If this fails, the next load of the key tries again.
   */
  function renewDigest(loaded: CachedApiKey, secret: string): void {
    const { id, digest, pepperMark: mark } = loaded.key;
    if (loaded.isRenewed || (mark !== undefined && sameDigest(mark, currentMark))) return;
    loaded.isRenewed = true;
    storeKeyDigest(pool, id, digest, storedSecret(secret, pepper)).then(
      () => keys.drop(id),
      () => {},
    );
  }

  async function principalOfKey(key: KnownApiKey, deadline: Deadline): Promise<Principal> {
    onKeyUsed?.(key.id);
    return principalOf(key, parts, deadline);
  }

  return {
    async ofSecret({ id, secret }: ApiKey, deadline: Deadline): Promise<Principal> {
      if (id === operatorKey?.id) {
        if (!sameDigest(digestSecret(secret, pepper), digestSecret(operatorKey.secret, pepper)))
          throw credentialInvalid();
        return operatorOfEnvironment(id);
      }
      const loaded = await keys.get(id, deadline);
      if (loaded === undefined) {
        sameDigest(digestSecret(secret, pepper), NO_DIGEST);
        throw credentialInvalid();
      }
      if (!loaded.hasSecret(secret, peppers)) throw credentialInvalid();
      if (peppers.second !== undefined) renewDigest(loaded, secret);
      const principal = await principalOfKey(loaded.key, deadline);
      return principal.role === "OPERATOR" ? principal : loaded.storePrincipal(principal);
    },

    async ofSession(id: string, digest: Buffer, deadline: Deadline): Promise<Principal> {
      if (id === operatorKey?.id) {
        if (!sameDigest(digest, digestSecret(operatorKey.secret, pepper))) throw credentialInvalid();
        return operatorOfEnvironment(id);
      }
      const loaded = await keys.get(id, deadline);
      if (loaded === undefined || !sameDigest(digest, loaded.key.digest)) throw credentialInvalid();
      return principalOfKey(loaded.key, deadline);
    },
  };
}

/** Returns the principal of a key that was found in the database. */
async function principalOf(
  key: KnownApiKey,
  { keys, tenants, goodUntilMs }: Pick<Principals, "keys" | "tenants" | "goodUntilMs">,
  deadline: Deadline,
): Promise<Principal> {
  const { id, role, tenantId, namespaces, askedAtMs, endsAtMs, expiresAtMs } = key;
  const credential = { kind: "API_KEY", expiresAtMs } as const;
  if (role === "OPERATOR" || tenantId === undefined) {
    return {
      role: "OPERATOR",
      actor: id,
      credential,
      goodUntilMs: Math.min(goodUntilMs(askedAtMs), endsAtMs),
    };
  }
  const tenant = await tenantOfKey(key, tenantId, { keys, tenants }, deadline);
  return {
    role,
    actor: id,
    credential,
    tenant,
    namespaces: namespaces && new Set(namespaces),
    goodUntilMs: Math.min(goodUntilMs(Math.min(askedAtMs, tenant.cacheEpoch.askedAtMs)), endsAtMs),
  };
}

/**
 * Returns the tenant of a key. Compares the tenant's uid, because after a restore its id may belong to
 * another tenant.
 */
async function tenantOfKey(
  { id, tenantUid }: KnownApiKey,
  tenantId: number,
  { keys, tenants }: Pick<Principals, "keys" | "tenants">,
  deadline: Deadline,
): Promise<Tenant> {
  const tenant = await tenants.get(tenantId, deadline);
  if (tenant.uid === tenantUid) return tenant;
  tenants.drop(tenantId);
  keys.drop(id);
  const reread = await tenants.get(tenantId, deadline);
  if (reread.uid !== tenantUid) throw credentialInvalid();
  return reread;
}

/** Returns the principals of the console's sessions. */
function createBySession(
  { tokens, tenants, goodUntilMs }: Principals,
  byKey: ReturnType<typeof createByApiKey>["ofSession"],
) {
  return async (
    { credential, tenantId, expiresAtMs }: KnownSession,
    deadline: Deadline,
  ): Promise<Principal> => {
    switch (credential.kind) {
      case "API_KEY":
        return byKey(credential.actor, credential.keyDigest, deadline);
      case "TOKEN": {
        const { role, actor, namespaces } = credential;
        const facts = { kind: "TOKEN", expiresAtMs } as const;
        if (tokens?.issuer !== credential.issuer) throw credentialInvalid();
        if (role === "OPERATOR")
          return { role, actor, credential: facts, goodUntilMs: Number.POSITIVE_INFINITY };
        if (tenantId === undefined) throw new Error("a tenant's session has no tenant");
        const tenant = await tenants.get(tenantId, deadline);
        return {
          role,
          actor,
          credential: facts,
          tenant,
          namespaces: namespaces && new Set(namespaces),
          goodUntilMs: goodUntilMs(tenant.cacheEpoch.askedAtMs),
        };
      }
    }
  };
}

/** Returns the principal of the operator's key that is not stored in the database. */
function operatorOfEnvironment(id: string): Principal {
  return {
    role: "OPERATOR",
    actor: id,
    credential: { kind: "API_KEY", expiresAtMs: undefined },
    goodUntilMs: Number.POSITIVE_INFINITY,
  };
}
