import { timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Pool } from "../database/pool.ts";
import { findApiKeys, type KnownApiKey } from "../database/tenants/api-keys.ts";
import type { Deadline } from "../domain/operation.ts";
import type { Principal } from "../domain/tenant.ts";
import { StatementBatcher } from "../records/engine/batcher.ts";
import { type ApiKey, digestSecret, ID_LENGTH, SECRET_LENGTH, sameDigest } from "./api-key.ts";
import type { Peppers } from "./pepper.ts";

export interface RefreshingCacheOptions<Key, Value> {
  /** Loads many keys in few statements. The map lacks keys that do not exist. */
  readonly load: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>;
  /**
   * Maximum age of a returned value, in milliseconds: the time within which a change is effective on every
   * replica. Unset: MAX_AGE_MS.
   */
  readonly maxAgeMs?: number | undefined;
  readonly maxEntries: number;
  /**
   * Maximum size of all values, as `bytesOf` counts them. The least recently used values are evicted first.
   */
  readonly maxBytes?: number;
  readonly bytesOf?: (value: Value) => number;
  /**
   * Returns when a value expires, in `performance.now()` milliseconds; from then on it is loaded
   * again. Undefined: values do not expire.
   */
  readonly endsAtMs?: (value: Value) => number;
}

interface Entry<Value> {
  readonly value: Value | undefined;
  /** Start of the load, in `performance.now()` milliseconds: a change may have followed at once. */
  readonly asOfMs: number;
  refreshing: boolean;
}

/**
 * The contract promises that a revoked key, a suspended tenant and a changed policy are effective everywhere
 * within 10 s. One second of it is for a load that is in flight.
 */
export const MAX_AGE_MS = 9000;
/** Age from which a used value is loaded again in the background, so that no call waits for it. */
const REFRESH_AFTER_MS = 4000;
/** Maximum age of the knowledge that a key does not exist: it may have been created since. */
const MAX_ABSENCE_AGE_MS = 1000;
/**
 * Keys that do not exist have a cache of their own: a stranger can invent any number, and they must not evict
 * values.
 */
const MAX_ABSENCES = 1000;
const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/**
 * Creates a cache of database rows that bounds their age.
 *
 * `fetch` of `lru-cache` does not replace it: it loads one key at a time, where this cache loads all keys
 * that are requested together in one statement, and it dates a value from the end of a load, where our bound
 * counts from the start.
 */
export function createRefreshingCache<Key extends string | number, Value>(
  options: RefreshingCacheOptions<Key, Value>,
) {
  const {
    load,
    maxAgeMs = MAX_AGE_MS,
    maxEntries,
    maxBytes,
    bytesOf = () => 1,
    endsAtMs = () => Number.POSITIVE_INFINITY,
  } = options;
  const entries = new LRUCache<Key, Entry<Value>>({
    max: maxEntries,
    ...(maxBytes !== undefined && {
      maxSize: maxBytes,
      sizeCalculation: ({ value }) => (value === undefined ? 1 : bytesOf(value)),
    }),
  });
  const absences = new LRUCache<Key, Entry<Value>>({ max: MAX_ABSENCES });
  let lastDropAtMs = Number.NEGATIVE_INFINITY;
  const loads = new StatementBatcher<Key, Entry<Value>>({
    nameOf: String,
    rowForDuplicate: (entry) => entry,
    maxInFlight: 1,
    async execute(keys) {
      const asOfMs = performance.now();
      const found = await load(keys);
      return keys.map((key) => ({ value: found.get(key), asOfMs, refreshing: false }));
    },
  });

  async function reload(key: Key, deadline: Deadline): Promise<Value | undefined> {
    const entry = await loads.submit(key, deadline);
    entries.delete(key);
    absences.delete(key);
    // A load that began before the last drop may have read the old row.
    if (entry.asOfMs <= lastDropAtMs) return entry.value;
    (entry.value === undefined ? absences : entries).set(key, entry);
    return entry.value;
  }

  function isTooOld({ value, asOfMs }: Entry<Value>, nowMs: number): boolean {
    if (value === undefined) return nowMs - asOfMs >= MAX_ABSENCE_AGE_MS;
    return nowMs - asOfMs >= maxAgeMs || nowMs >= endsAtMs(value);
  }

  return {
    /**
     * Returns a value that is at most `maxAgeMs` old and has not ended; undefined if the database has no such
     * key.
     *
     * @throws Refusal the error of the load, if the cached value is missing or too old.
     */
    async get(key: Key, deadline: Deadline): Promise<Value | undefined> {
      const entry = entries.get(key) ?? absences.get(key);
      const nowMs = performance.now();
      if (entry === undefined || isTooOld(entry, nowMs)) return reload(key, deadline);
      if (nowMs - entry.asOfMs >= REFRESH_AFTER_MS && !entry.refreshing) {
        entry.refreshing = true;
        // Once the entry is too old, a call loads it and receives the error.
        reload(key, NO_DEADLINE).catch(() => {
          entry.refreshing = false;
        });
      }
      return entry.value;
    },
    /** Returns the cached value if it needs no refresh; undefined otherwise: call `get` then. */
    peek(key: Key, nowMs = performance.now()): Value | undefined {
      const entry = entries.peek(key);
      if (entry === undefined) return undefined;
      return nowMs - entry.asOfMs < REFRESH_AFTER_MS && !isTooOld(entry, nowMs) ? entry.value : undefined;
    },
    /** Drops a key that was just changed; results of loads in flight are not cached. */
    drop(key: Key): void {
      entries.delete(key);
      absences.delete(key);
      lastDropAtMs = performance.now();
    },
    /** Drops all keys; results of loads in flight are not cached. */
    clear(): void {
      entries.clear();
      lastDropAtMs = performance.now();
    },
  };
}

/** The usual spelling of a header with an API key, and the offsets of the key's parts in it. */
const USUAL_START = "Bearer ow_";
const ID_AT = USUAL_START.length;
const SECRET_AT = ID_AT + ID_LENGTH + 1;
const USUAL_LENGTH = SECRET_AT + SECRET_LENGTH;

/**
 * Cuts an API key out of a header by the offsets of its parts, in a sixth of the time of
 * `parseAuthorization`. The result is not validated: use it only to look up and compare a known key. Returns
 * undefined if the header has another form.
 */
export function sliceApiKey(header: string): ApiKey | undefined {
  if (header.length !== USUAL_LENGTH || !header.startsWith(USUAL_START)) return undefined;
  if (header[SECRET_AT - 1] !== "_") return undefined;
  return { id: header.slice(ID_AT, SECRET_AT - 1), secret: header.slice(SECRET_AT) };
}

/**
 * An API key of the database with its verified secret and its principal. A reload of the key replaces the
 * whole object, so that a verified secret never outlives the digest that it was verified against.
 */
export class CachedApiKey {
  readonly key: KnownApiKey;
  #secret: Buffer | undefined;
  #principal: Principal | undefined;
  /** Whether its digest was stored under the current pepper since the key was loaded. */
  isRenewed = false;

  constructor(key: KnownApiKey) {
    this.key = key;
  }

  /**
   * Returns whether this is the key's secret. Computes a digest only for a secret that was not verified
   * before.
   */
  hasSecret(secret: string, { current, second }: Peppers): boolean {
    if (this.#isVerified(secret)) return true;
    const isDigestUnder = (pepper: string) => sameDigest(digestSecret(secret, pepper), this.key.digest);
    if (!isDigestUnder(current) && (second === undefined || !isDigestUnder(second))) return false;
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
export function createApiKeyCache(pool: Pool, maxAgeMs: number) {
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
    maxAgeMs,
  });
}
