import { LRUCache } from "lru-cache";
import type { CacheEpoch } from "../../domain/tenant.ts";
import type { CachedCompletion, RecordId } from "../record.ts";
import { resultBytes } from "../result-bytes.ts";
import { decodeCompletion, encodeCompletion } from "./completion-bytes.ts";
import type { EntryFormat } from "./entry-format.ts";
import type { MemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";

/** The largest result, with its metadata, that caches keep: a larger one would evict hundreds of others. */
export const MAX_CACHED_BYTES = 16 * 1024;

/**
 * A cache of completed records. A completed record changes only by being forgotten, so that a cached
 * completion is as good as the record while its tenant's cache epoch lasts.
 *
 * - It only answers *completed*. A miss grants nothing: only Postgres grants.
 * - It answers no completion whose record's or result's retention has ended on the database's clock.
 * - It never finds a completion of another epoch (from before a record was forgotten, retention was shortened or the database was
 *   restored), even if that completion is stored late.
 */
export interface ReplayCache {
  /** Returns the completion that this process' memory holds. */
  findInMemory(id: RecordId, epoch: CacheEpoch): CachedCompletion | undefined;
  /**
   * Finds a completion that memory does not hold; undefined where Redis is not asked. Never rejects, and takes at most Redis'
   * command timeout.
   */
  findInRedis(id: RecordId, epoch: CacheEpoch): Promise<CachedCompletion | undefined> | undefined;
  /**
   * Keeps a completion that a statement returned: in memory, and in Redis where it is asked; one that is too large only
   * replaces what was kept of the record, which may have been forgotten since. Call it after the commit, with the epoch from
   * before the statement.
   */
  keep(id: RecordId, completion: CachedCompletion, epoch: CacheEpoch): void;
  /** Counts a claim that Postgres answered, with a result (`repeat`) or with anything else. */
  countAnswer(id: RecordId, repeat: boolean): void;
}

/** Forgetting is effective everywhere within this time: a call whose epoch was read earlier finds nothing. */
const MAX_EPOCH_AGE_MS = 10_000;
/** Maximum lifetime of an entry: Postgres can answer repeats that are this rare. */
const MAX_LIFETIME_MS = 3_600_000;

/** In Redis in place of a completion that is not cached: shorter than any entry. */
const NO_COMPLETION = Buffer.of(0);

/** Creates a replay cache. */
export function createReplayCache({
  memory,
  redis,
  format,
  onLookup,
}: {
  readonly memory: MemoryCache;
  /** Undefined: Redis is not configured. */
  readonly redis: RedisCache | undefined;
  readonly format: EntryFormat;
  /** Called for every lookup, for the metrics. */
  readonly onLookup: (layer: "memory" | "redis", result: "hit" | "miss" | "invalid" | "unanswered") => void;
}): ReplayCache {
  const meter = createRepeatMeter();
  const lookups = new Map<string, Promise<CachedCompletion | undefined>>();

  async function askRedis(
    cache: RedisCache,
    id: RecordId,
    name: string,
    epoch: CacheEpoch,
  ): Promise<CachedCompletion | undefined> {
    const { bytes: entry, answered } = await cache.get(name);
    if (entry === undefined || NO_COMPLETION.equals(entry)) {
      onLookup("redis", answered ? "miss" : "unanswered");
      return undefined;
    }
    const held = format.load(name, entry);
    const bytes = held && format.reveal(name, held);
    const completion = bytes && decodeCompletion(bytes);
    // Redis may hold an entry past its lifetime, if the entry was stored late or comes from a snapshot.
    const lifetimeMs = completion === undefined ? 0 : remainingMs(completion, latestNowMs(epoch));
    if (held === undefined || lifetimeMs <= 0) {
      onLookup("redis", "invalid");
      return undefined;
    }
    onLookup("redis", "hit");
    meter.count(namespaceOf(id), true);
    memory.set(name, held, Math.min(lifetimeMs, MAX_LIFETIME_MS));
    return completion;
  }

  /**
   * Shares one lookup among concurrent claims of a record: Redis is asked once for a popular key, and the
   * claims continue in the order of their arrival, as the calls of a batch must.
   */
  function askRedisOnce(
    cache: RedisCache,
    id: RecordId,
    name: string,
    epoch: CacheEpoch,
  ): Promise<CachedCompletion | undefined> {
    const inFlight = lookups.get(name);
    if (inFlight !== undefined) return inFlight;
    const lookup = askRedis(cache, id, name, epoch).finally(() => lookups.delete(name));
    lookups.set(name, lookup);
    return lookup;
  }

  return {
    findInMemory(id, epoch) {
      if (isOld(epoch)) return undefined;
      const name = nameOf(id, epoch);
      const held = memory.get(name);
      const bytes = held && format.reveal(name, held);
      const completion = bytes && decodeCompletion(bytes);
      const isRetained = completion !== undefined && remainingMs(completion, latestNowMs(epoch)) > 0;
      onLookup("memory", isRetained ? "hit" : "miss");
      return isRetained ? completion : undefined;
    },

    findInRedis(id, epoch) {
      if (redis === undefined || isOld(epoch) || !meter.repeatsOften(namespaceOf(id))) return undefined;
      return askRedisOnce(redis, id, nameOf(id, epoch), epoch);
    },

    keep(id, completion, epoch) {
      const name = nameOf(id, epoch);
      if (resultBytes(completion.result) > MAX_CACHED_BYTES) {
        memory.delete(name);
        // Longer than any call that may still look for this name.
        redis?.set(name, () => NO_COMPLETION, MAX_EPOCH_AGE_MS);
        return;
      }
      const lifetimeMs = Math.min(remainingMs(completion, latestNowMs(epoch)), MAX_LIFETIME_MS);
      if (lifetimeMs <= 0) return;
      const held = format.hold(name, encodeCompletion(completion));
      memory.set(name, held, lifetimeMs);
      // Elsewhere nearly no copy would ever be read (server/decisions/0023-copies-where-they-are-read.md).
      if (meter.repeatsOften(namespaceOf(id))) redis?.set(name, () => format.store(name, held), lifetimeMs);
    },

    countAnswer: (id, repeat) => meter.count(namespaceOf(id), repeat),
  };
}

function isOld({ askedAtMs }: CacheEpoch): boolean {
  return performance.now() - askedAtMs > MAX_EPOCH_AGE_MS;
}

/**
 * Returns the latest time that the database's clock can show now: exact but for the time that reading the
 * clock took.
 */
function latestNowMs({ askedAtMs, databaseTimeMs }: CacheEpoch): number {
  return databaseTimeMs + performance.now() - askedAtMs;
}

/** Returns how long both the record and its result are still retained; times are the database's. */
function remainingMs({ resultExpiresAtMs, expiresAtMs }: CachedCompletion, nowMs: number): number {
  return Math.min(resultExpiresAtMs, expiresAtMs) - nowMs;
}

/**
 * Returns the entry's name. The scope identifies the tenant; the namespace's length separates namespace and
 * key unambiguously.
 */
function nameOf({ namespace, key }: RecordId, { scope }: CacheEpoch): string {
  return `${scope}:${namespace.length}:${namespace}${key}`;
}

/** Returns a name that a namespace has among all tenants. */
export function namespaceOf({ tenantId, namespace }: RecordId): string {
  return `${tenantId}:${namespace}`;
}

/** Weight of the newest claim: about the last two hundred claims count. */
const WEIGHT = 1 / 100;
/** A round trip to Redis costs about a tenth of a statement, so that it pays from one repeat in ten. */
const OFTEN = 0.1;
/** The least recently counted namespaces are evicted beyond this number. */
const MAX_NAMESPACES = 10_000;

/**
 * Creates a meter of the share of repeats among the claims of a namespace, whose name must be unique among all tenants. Redis is
 * asked before Postgres, and filled, only where repeats are frequent, so that fresh claims and their completions elsewhere do not
 * pay for it.
 */
export function createRepeatMeter() {
  const shares = new LRUCache<string, number>({ max: MAX_NAMESPACES });
  return {
    /** Counts a claim that was answered with a result (`repeat`) or with anything else. */
    count(namespace: string, repeat: boolean): void {
      const share = shares.get(namespace) ?? 0;
      shares.set(namespace, share + WEIGHT * ((repeat ? 1 : 0) - share));
    },
    /** Returns whether the share of repeats among the recent claims is at least `often`. Unset: one in ten. */
    repeatsOften: (namespace: string, often = OFTEN): boolean => (shares.get(namespace) ?? 0) >= often,
  };
}
