import { createSecretKey } from "node:crypto";
import type { CachedCompletion, RecordId } from "../domain/record.ts";
import type { CacheEpoch } from "../domain/tenant.ts";
import { decodeCompletion, encodeCompletion } from "./completion-bytes.ts";
import { openEntry, sealEntry } from "./entry.ts";
import type { MemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";
import { createRepeatMeter } from "./repeat-meter.ts";

/**
 * Completed records, close at hand. They never change but by being forgotten, and so a copy is as good as the original
 * for as long as its tenant's scope of copies is.
 *
 * What it promises: it only ever answers *completed*; a miss grants nothing, because only Postgres grants; no copy is
 * answered from once its record's or its result's retention has ended on the database's clock; and what was filled in
 * in another scope (before a record was forgotten or retention shortened, or before the database was restored) is never found,
 * however late the filling comes.
 */
export interface ReplayCache {
  /** At once where Redis need not be asked. Never rejects, and takes Redis' command timeout at most. */
  find(id: RecordId, epoch: CacheEpoch): CachedCompletion | undefined | Promise<CachedCompletion | undefined>;
  /** Keeps what a statement showed; call it after the commit, with the epoch known before the statement. */
  keep(id: RecordId, copy: CachedCompletion, epoch: CacheEpoch): void;
  /** A claim that Postgres answered: with a result, or with anything else. */
  countAnswer(id: RecordId, repeat: boolean): void;
}

/** Told of every look, for the metrics. */
export type OnLookup = (layer: "memory" | "redis", result: "hit" | "miss" | "invalid" | "unanswered") => void;

export interface ReplayCacheOptions {
  readonly memory: MemoryCache;
  /** Undefined: there is no Redis, which is a supported way to run. */
  readonly redis: RedisCache | undefined;
  /** Keys the digest of what is kept in Redis; the same on every replica. */
  readonly secret: string;
  readonly onLookup: OnLookup;
}

/** Forgetting is effective everywhere within this: a call that knows only an older scope finds nothing. */
const MAX_TERMS_AGE_MS = 10_000;
/** Nothing is kept longer than this: what is asked for that rarely may be asked of Postgres. */
const MAX_LIFETIME_MS = 3_600_000;
/** A larger payload would push hundreds of others out. */
const MAX_PAYLOAD_BYTES = 16 * 1024;

/** @see ReplayCache */
export function createReplayCache({ memory, redis, secret, onLookup }: ReplayCacheOptions): ReplayCache {
  const meter = createRepeatMeter();
  const looks = new Map<string, Promise<CachedCompletion | undefined>>();
  const key = createSecretKey(secret, "utf8");

  function findInMemory(name: string, epoch: CacheEpoch): CachedCompletion | undefined {
    const bytes = memory.get(name);
    const copy = bytes && decodeCompletion(bytes);
    const found = copy !== undefined && leftMs(copy, latestNowMs(epoch)) > 0 ? copy : undefined;
    onLookup("memory", found === undefined ? "miss" : "hit");
    return found;
  }

  async function findInRedis(
    cache: RedisCache,
    id: RecordId,
    name: string,
    epoch: CacheEpoch,
  ): Promise<CachedCompletion | undefined> {
    const { bytes: entry, answered } = await cache.get(name);
    if (entry === undefined) {
      onLookup("redis", answered ? "miss" : "unanswered");
      return undefined;
    }
    const bytes = openEntry(name, entry, key);
    const copy = bytes && decodeCompletion(bytes);
    // Redis may keep an entry for longer than it was told: one that came late, or from a snapshot.
    const lifetimeMs = copy === undefined ? 0 : leftMs(copy, latestNowMs(epoch));
    if (bytes === undefined || lifetimeMs <= 0) {
      onLookup("redis", "invalid");
      return undefined;
    }
    onLookup("redis", "hit");
    meter.count(namespaceOf(id), true);
    memory.set(name, bytes, Math.min(lifetimeMs, MAX_LIFETIME_MS));
    return copy;
  }

  /**
   * One look for all who ask for a record meanwhile: Redis hears once of a key that everybody wants, and they go on in
   * the order in which they came, as a batch's calls must.
   */
  function lookTogether(
    cache: RedisCache,
    id: RecordId,
    name: string,
    epoch: CacheEpoch,
  ): Promise<CachedCompletion | undefined> {
    const underWay = looks.get(name);
    if (underWay !== undefined) return underWay;
    const look = findInRedis(cache, id, name, epoch).finally(() => looks.delete(name));
    looks.set(name, look);
    return look;
  }

  return {
    find(id, epoch) {
      if (performance.now() - epoch.askedAtMs > MAX_TERMS_AGE_MS) return undefined;
      const name = nameOf(id, epoch);
      const copy = findInMemory(name, epoch);
      if (copy !== undefined || redis === undefined) return copy;
      return meter.repeatsOften(namespaceOf(id)) ? lookTogether(redis, id, name, epoch) : undefined;
    },

    keep(id, copy, epoch) {
      if (copy.result.payload.byteLength > MAX_PAYLOAD_BYTES) return;
      const lifetimeMs = Math.min(leftMs(copy, latestNowMs(epoch)), MAX_LIFETIME_MS);
      if (lifetimeMs <= 0) return;
      const name = nameOf(id, epoch);
      const bytes = encodeCompletion(copy);
      memory.set(name, bytes, lifetimeMs);
      redis?.set(name, () => sealEntry(name, bytes, key), lifetimeMs);
    },

    countAnswer: (id, repeat) => meter.count(namespaceOf(id), repeat),
  };
}

/** No earlier than what the database's clock says now, and later by the time that reading it took, at most. */
function latestNowMs({ askedAtMs, databaseTimeMs }: CacheEpoch): number {
  return databaseTimeMs + performance.now() - askedAtMs;
}

/** How long a record, and its result, are still retained; both on the database's clock. */
function leftMs({ resultExpiresAtMs, expiresAtMs }: CachedCompletion, nowMs: number): number {
  return Math.min(resultExpiresAtMs, expiresAtMs) - nowMs;
}

/** The scope says whose copy it is. The namespace's length keeps it apart from the key, whatever characters they hold. */
function nameOf({ namespace, key }: RecordId, { scope }: CacheEpoch): string {
  return `${scope}:${namespace.length}:${namespace}${key}`;
}

function namespaceOf({ tenantId, namespace }: RecordId): string {
  return `${tenantId}:${namespace}`;
}
