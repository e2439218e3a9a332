import type { Pool } from "../database/pool.ts";
import { type KnownApiKey, storeKeyDigest } from "../database/tenants/api-keys.ts";
import { createFindTenants, findTenantIds } from "../database/tenants/tenants.ts";
import type { Deadline } from "../domain/operation.ts";
import { credentialInvalid, Refusal } from "../domain/refusal.ts";
import type { Principal, Tenant } from "../domain/tenant.ts";
import { type ApiKey, digestSecret, parseAuthorization, sameDigest } from "./api-key.ts";
import {
  CachedApiKey,
  createApiKeyCache,
  createRefreshingCache,
  MAX_AGE_MS,
  sliceApiKey,
} from "./credential-cache.ts";
import type { TokenVerifier, VerifiedIdentity } from "./jwt.ts";
import { type Peppers, pepperMark, storedSecret } from "./pepper.ts";
import type { KnownSession, SessionFinder } from "./sessions.ts";

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
/** Callers of a moving tenant wait for its new address. */
const MOVING_MAX_AGE_MS = 1000;
const MAX_CACHED_TENANTS = 20_000;
type TenantPrincipal = Exclude<Principal, { readonly role: "OPERATOR" }>;

/** Compared with if the key does not exist, so that a wrong id takes as long as a wrong secret. */
const NO_DIGEST = Buffer.alloc(32);

/** Identifies callers by their `authorization` header, or by the cookie of a session of the console. */
export class Authenticator {
  readonly #pool: Pool;
  readonly #options: AuthenticatorOptions;
  readonly #maxAgeMs: number;
  readonly #keys: ReturnType<typeof createApiKeyCache>;
  readonly #tenants: ReturnType<typeof createRefreshingCache<number, Tenant>>;
  /** A tenant's name can be used again after a deletion. By then `#tenants` no longer holds the old id. */
  readonly #tenantIds: ReturnType<typeof createRefreshingCache<string, number>>;
  readonly #operator: CachedApiKey | undefined;
  readonly #currentMark: Buffer;

  constructor(pool: Pool, options: AuthenticatorOptions) {
    const { peppers, operatorKey, maxAgeMs = MAX_AGE_MS } = options;
    this.#pool = pool;
    this.#options = options;
    this.#maxAgeMs = maxAgeMs;
    this.#keys = createApiKeyCache(pool, maxAgeMs);
    const ofTenants = { maxEntries: MAX_CACHED_TENANTS, maxAgeMs };
    const endsAtMs = ({ moving, cacheEpoch: { askedAtMs } }: Tenant) =>
      askedAtMs + (moving ? MOVING_MAX_AGE_MS : maxAgeMs);
    this.#tenants = createRefreshingCache({ load: createFindTenants(pool), ...ofTenants, endsAtMs });
    this.#tenantIds = createRefreshingCache({ load: (names) => findTenantIds(pool, names), ...ofTenants });
    this.#currentMark = pepperMark(peppers.current);
    this.#operator = operatorKey && keyOfEnvironment(operatorKey, peppers.current);
  }

  /**
   * Drops a tenant that was changed through this replica, so that its next call here sees the change. Other
   * replicas: within 10 s.
   */
  tenantChanged(id: number): void {
    this.#tenants.drop(id);
  }

  /** Drops an API key, as `tenantChanged` drops a tenant. */
  apiKeyChanged(id: string): void {
    this.#keys.drop(id);
  }

  /** Drops all keys and tenants, after the database was restored or replaced. */
  databaseChanged(): void {
    this.#keys.clear();
    this.#tenants.clear();
    this.#tenantIds.clear();
    this.#options.sessions?.clear();
  }

  /**
   * Returns the principal of an API key that was verified recently and whose cached key and tenant are fresh;
   * undefined otherwise: call `authenticate` then.
   */
  cachedPrincipal(authorization: string | undefined): Principal | undefined {
    const presented = authorization === undefined ? undefined : sliceApiKey(authorization);
    if (presented === undefined) return undefined;
    const nowMs = performance.now();
    const principal = this.#keys.peek(presented.id, nowMs)?.cachedPrincipal(presented.secret);
    if (principal === undefined || principal.role === "OPERATOR") return undefined;
    return this.#tenants.peek(principal.tenant.id, nowMs) === principal.tenant ? principal : undefined;
  }

  /**
   * Returns the principal of a credential.
   *
   * @throws Refusal CREDENTIAL_MISSING; CREDENTIAL_INVALID, with the same text for an unknown, expired or revoked credential and
   *   for a wrong secret; ISSUER_UNAVAILABLE, as TokenVerifier.
   */
  async authenticate(authorization: string | undefined, deadline: Deadline): Promise<Principal> {
    if (authorization === undefined) return this.#anonymous(deadline);
    const credential = parseAuthorization(authorization);
    if (credential.kind === "apiKey") return this.#ofSecret(credential.apiKey, deadline);
    const { tokens } = this.#options;
    if (tokens === undefined)
      throw new Refusal(
        "CREDENTIAL_INVALID",
        "The credential is a token, and this server accepts API keys only.",
      );
    return this.authenticateIdentity(await tokens.verify(credential.token), deadline);
  }

  /**
   * Returns the principal of a token's identity.
   *
   * @throws Refusal CREDENTIAL_INVALID if its tenant does not exist.
   */
  async authenticateIdentity(identity: VerifiedIdentity, deadline: Deadline): Promise<Principal> {
    const { role, actor, expiresAtMs } = identity;
    const credential = { kind: "TOKEN", expiresAtMs } as const;
    if (role === "OPERATOR") return { role, actor, credential, goodUntilMs: this.#goodUntilMs() };
    const { tenantName, namespaces } = identity;
    return this.#ofTenant(await this.#tenantNamed(tenantName, deadline), {
      role,
      actor,
      credential,
      namespaces,
    });
  }

  /**
   * Returns the principal of a session of the console: the one that its API key or token would give.
   *
   * @throws Refusal CREDENTIAL_INVALID if the session or its credential has ended.
   */
  async authenticateSession(cookie: string, deadline: Deadline): Promise<Principal> {
    const { sessions } = this.#options;
    if (sessions === undefined) throw credentialInvalid();
    const session = await sessions.find(cookie, deadline);
    const principal = await this.#ofSession(session, deadline);
    const endsAtMs = Math.min(this.#goodUntilMs(session.askedAtMs), session.endsAtMs);
    return { ...principal, goodUntilMs: Math.min(principal.goodUntilMs, endsAtMs) };
  }

  /** Returns until when the result of a query may decide calls, in `performance.now()` milliseconds. */
  #goodUntilMs(askedAtMs = performance.now()): number {
    return askedAtMs + this.#maxAgeMs + DECISION_MS;
  }

  /** Returns the principal of a credential that acts for a tenant. */
  #ofTenant(
    tenant: Tenant,
    facts: Pick<TenantPrincipal, "role" | "actor" | "namespaces" | "credential">,
  ): TenantPrincipal {
    return { ...facts, tenant, goodUntilMs: this.#goodUntilMs(tenant.cacheEpoch.askedAtMs) };
  }

  async #anonymous(deadline: Deadline): Promise<Principal> {
    const { anonymousTenant } = this.#options;
    if (anonymousTenant === undefined)
      throw new Refusal("CREDENTIAL_MISSING", "Send `authorization: Bearer <API key or token>`.");
    const tenant = await this.#tenantNamed(anonymousTenant, deadline);
    return this.#ofTenant(tenant, { role: "CALLER", actor: "anonymous", namespaces: undefined });
  }

  async #ofSecret({ id, secret }: ApiKey, deadline: Deadline): Promise<Principal> {
    const { peppers } = this.#options;
    const loaded = await this.#key(id, deadline);
    if (loaded === undefined) {
      sameDigest(digestSecret(secret, peppers.current), NO_DIGEST);
      throw credentialInvalid();
    }
    if (!loaded.hasSecret(secret, peppers)) throw credentialInvalid();
    if (peppers.second !== undefined) this.#renewDigest(loaded, secret, peppers.current);
    const principal = await this.#ofKey(loaded, deadline);
    return principal.role === "OPERATOR" ? principal : loaded.storePrincipal(principal);
  }

  async #ofSession(
    { credential, tenantId, expiresAtMs }: KnownSession,
    deadline: Deadline,
  ): Promise<Principal> {
    if (credential.kind === "API_KEY") {
      const loaded = await this.#key(credential.actor, deadline);
      if (loaded === undefined || !sameDigest(credential.keyDigest, loaded.key.digest))
        throw credentialInvalid();
      return this.#ofKey(loaded, deadline);
    }
    const { role, actor, issuer, namespaces } = credential;
    if (this.#options.tokens?.issuer !== issuer) throw credentialInvalid();
    const facts = { actor, credential: { kind: "TOKEN", expiresAtMs } } as const;
    if (role === "OPERATOR") return { role, ...facts, goodUntilMs: this.#goodUntilMs() };
    if (tenantId === undefined) throw new Error("a tenant's session has no tenant");
    const tenant = await this.#tenant(tenantId, deadline);
    return this.#ofTenant(tenant, { role, ...facts, namespaces: namespaces && new Set(namespaces) });
  }

  /** Returns the principal of a key whose secret, or its digest, was compared. */
  async #ofKey(loaded: CachedApiKey, deadline: Deadline): Promise<Principal> {
    const { id: actor, role, tenantId, namespaces, askedAtMs, endsAtMs, expiresAtMs } = loaded.key;
    if (loaded !== this.#operator) this.#options.onKeyUsed?.(actor);
    const credential = { kind: "API_KEY", expiresAtMs } as const;
    const goodUntilMs = Math.min(this.#goodUntilMs(askedAtMs), endsAtMs);
    if (role === "OPERATOR" || tenantId === undefined)
      return { role: "OPERATOR", actor, credential, goodUntilMs };
    const principal = this.#ofTenant(await this.#tenantOfKey(loaded.key, tenantId, deadline), {
      role,
      actor,
      credential,
      namespaces: namespaces && new Set(namespaces),
    });
    return { ...principal, goodUntilMs: Math.min(goodUntilMs, principal.goodUntilMs) };
  }

  /** Returns the key of an id, whose secret is not compared yet; undefined if there is none. */
  async #key(id: string, deadline: Deadline): Promise<CachedApiKey | undefined> {
    return id === this.#operator?.key.id ? this.#operator : this.#keys.get(id, deadline);
  }

  /**
   * Stores the digest of a verified secret under the current pepper, unless it is known to be: only a use
   * shows the secret. If this fails, the next load of the key tries again.
   */
  #renewDigest(loaded: CachedApiKey, secret: string, pepper: string): void {
    const { id, digest, pepperMark: mark } = loaded.key;
    if (loaded.isRenewed || (mark !== undefined && sameDigest(mark, this.#currentMark))) return;
    loaded.isRenewed = true;
    storeKeyDigest(this.#pool, id, digest, storedSecret(secret, pepper)).then(
      () => this.#keys.drop(id),
      () => {},
    );
  }

  /** @throws Refusal CREDENTIAL_INVALID if there is no such tenant. */
  async #tenant(id: number, deadline: Deadline): Promise<Tenant> {
    const tenant = await this.#tenants.get(id, deadline);
    if (tenant === undefined) throw credentialInvalid();
    return tenant;
  }

  /** @throws Refusal CREDENTIAL_INVALID if there is no such tenant. */
  async #tenantNamed(name: string, deadline: Deadline): Promise<Tenant> {
    const id = await this.#tenantIds.get(name, deadline);
    if (id === undefined) throw credentialInvalid();
    const tenant = await this.#tenant(id, deadline);
    // After a restore, the id may belong to a tenant with another name.
    if (tenant.name !== name) throw credentialInvalid();
    return tenant;
  }

  /**
   * Returns the tenant of a key. Compares the tenant's uid, because after a restore its id may belong to
   * another tenant.
   */
  async #tenantOfKey({ id, tenantUid }: KnownApiKey, tenantId: number, deadline: Deadline): Promise<Tenant> {
    const tenant = await this.#tenant(tenantId, deadline);
    if (tenant.uid === tenantUid) return tenant;
    this.#tenants.drop(tenantId);
    this.#keys.drop(id);
    const reread = await this.#tenant(tenantId, deadline);
    if (reread.uid !== tenantUid) throw credentialInvalid();
    return reread;
  }
}

/** Returns the operator's key that is not stored in the database, as if it were. */
function keyOfEnvironment({ id, secret }: ApiKey, pepper: string): CachedApiKey {
  return new CachedApiKey({
    id,
    role: "OPERATOR",
    tenantId: undefined,
    tenantUid: undefined,
    namespaces: undefined,
    ...storedSecret(secret, pepper),
    askedAtMs: Number.POSITIVE_INFINITY,
    endsAtMs: Number.POSITIVE_INFINITY,
    expiresAtMs: undefined,
  });
}
