import { timingSafeEqual } from "node:crypto";
import type { Principal } from "../domain/tenant.ts";
import type { Pool } from "../store/pool.ts";
import { findApiKeys, type KnownApiKey } from "../store/tenants/api-keys.ts";
import { digestSecret, SECRET_LENGTH, sameDigest } from "./api-key.ts";
import {
  createRefreshingCache,
  type RefreshingCache,
  type RefreshingCacheOptions,
} from "./refreshing-cache.ts";

/**
 * An API key of the database with its verified secret and its principal. A reload of the key replaces the
 * whole object, so that a verified secret never outlives the digest that it was verified against.
 */
export class CachedApiKey {
  readonly key: KnownApiKey;
  #secret: Buffer | undefined;
  #principal: Principal | undefined;

  constructor(key: KnownApiKey) {
    this.key = key;
  }

  /**
   * Returns whether this is the key's secret. Computes a digest only for a secret that was not verified
   * before.
   */
  hasSecret(secret: string, pepper: string): boolean {
    if (this.#isVerified(secret)) return true;
    if (!sameDigest(digestSecret(secret, pepper), this.key.digest)) return false;
    this.#secret = Buffer.from(secret, "latin1");
    return true;
  }

  /** Stores the principal of the key, after its secret was verified; returns the principal. */
  storePrincipal(principal: Principal): Principal {
    this.#principal = principal;
    return principal;
  }

  /** Returns the stored principal if this secret was verified; undefined otherwise. */
  cachedPrincipal(secret: string): Principal | undefined {
    return this.#principal !== undefined && this.#isVerified(secret) ? this.#principal : undefined;
  }

  /** Compares in constant time. */
  #isVerified(secret: string): boolean {
    if (this.#secret === undefined || secret.length !== SECRET_LENGTH) return false;
    return timingSafeEqual(Buffer.from(secret, "latin1"), this.#secret);
  }
}

const MAX_KEYS = 20_000;
/** A key takes some hundred bytes, and more with up to 100 long names of namespaces. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Memory of a key without namespaces, with its cache entry and its principal. */
const KEY_BYTES = 1000;
/** Memory of a namespace's name beside its characters, in the key's list and in the principal's set. */
const NAME_BYTES = 60;

/** Creates the cache of API keys, by key id: at most 20,000 keys in 32 MiB. */
export function createApiKeyCache(
  pool: Pool,
  aging: Pick<RefreshingCacheOptions<string, CachedApiKey>, "maxAgeMs" | "refreshAfterMs">,
): RefreshingCache<string, CachedApiKey> {
  return createRefreshingCache<string, CachedApiKey>({
    async load(ids) {
      const keys = await findApiKeys(pool, ids);
      return new Map(Array.from(keys.values(), (key) => [key.id, new CachedApiKey(key)]));
    },
    maxEntries: MAX_KEYS,
    maxBytes: MAX_BYTES,
    bytesOf: ({ key: { namespaces = [] } }) =>
      namespaces.reduce((bytes, name) => bytes + name.length + NAME_BYTES, KEY_BYTES),
    endsAtMs: ({ key }) => key.endsAtMs,
    ...aging,
  });
}
