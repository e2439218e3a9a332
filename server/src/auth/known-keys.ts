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
 * An API key in memory, with the secret that was found to be its own and whom both stand for. It is replaced as a whole when
 * the key is loaded again, so that nothing proven outlives what it was proven against.
 */
export class LoadedKey {
  readonly key: KnownApiKey;
  #secret: Buffer | undefined;
  #principal: Principal | undefined;

  constructor(key: KnownApiKey) {
    this.key = key;
  }

  /** Whether this is the key's secret. Most calls bring one that was brought before, which takes no digest. */
  isSecret(secret: string, pepper: string): boolean {
    if (this.#isProven(secret)) return true;
    if (!sameDigest(digestSecret(secret, pepper), this.key.digest)) return false;
    this.#secret = Buffer.from(secret, "latin1");
    return true;
  }

  /** Keeps whom the key stands for, once its secret is proven. */
  standsFor(principal: Principal): Principal {
    this.#principal = principal;
    return principal;
  }

  /** Whom the key and this secret stood for last; undefined if that is not known. */
  findVerified(secret: string): Principal | undefined {
    return this.#principal !== undefined && this.#isProven(secret) ? this.#principal : undefined;
  }

  /** Compares in constant time. */
  #isProven(secret: string): boolean {
    if (this.#secret === undefined || secret.length !== SECRET_LENGTH) return false;
    return timingSafeEqual(Buffer.from(secret, "latin1"), this.#secret);
  }
}

const MAX_KEYS = 20_000;
/** Some hundred bytes each, and 100 long names of namespaces for some of them. */
const MAX_BYTES = 32 * 1024 * 1024;
/** What a key without namespaces takes, with its entry and its principal. */
const KEY_BYTES = 1000;
/** What a name takes beside its characters, in the list and in the principal's set. */
const NAME_BYTES = 60;

/** The API keys that were asked for lately. */
export function createKnownKeys(
  pool: Pool,
  aging: Pick<RefreshingCacheOptions<string, LoadedKey>, "maxAgeMs" | "refreshAfterMs">,
): RefreshingCache<string, LoadedKey> {
  return createRefreshingCache<string, LoadedKey>({
    async load(ids) {
      const keys = await findApiKeys(pool, ids);
      return new Map(Array.from(keys.values(), (key) => [key.id, new LoadedKey(key)]));
    },
    maxEntries: MAX_KEYS,
    maxBytes: MAX_BYTES,
    bytesOf: ({ key: { namespaces = [] } }) =>
      namespaces.reduce((bytes, name) => bytes + name.length + NAME_BYTES, KEY_BYTES),
    endsAtMs: ({ key }) => key.endsAtMs,
    ...aging,
  });
}
