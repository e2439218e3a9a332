import { LRUCache } from "lru-cache";

/** A tenant's rate on this replica. */
export interface Rate {
  readonly perSecond: number;
  /** Operations that may come at once. */
  readonly burst: number;
}

interface Bucket {
  /** Negative: a debt. */
  tokens: number;
  /** Time of the last refill. */
  atMs: number;
}

/** Maximum debt: a tenant that settled more than it may claim waits no longer than this. */
const MAX_DEBT_S = 10;
/** The least recently used buckets are evicted beyond this number; their tenants start with a full burst. */
const MAX_BUCKETS = 20_000;

/**
 * Creates token buckets, one for each tenant, or another key: an operation takes a token, and tokens return at the key's rate.
 *
 * The usual libraries do not replace it: they fix a bucket's rate when they create it, where a tenant's share
 * changes with the number of replicas, and they refuse the debt that settlements run up because they are
 * never refused.
 */
export function createRateLimit<Key extends number | string = number>() {
  const buckets = new LRUCache<Key, Bucket>({ max: MAX_BUCKETS });

  function addBucket(key: Key, { burst }: Rate, nowMs: number): Bucket {
    const bucket = { tokens: capacity(burst), atMs: nowMs };
    buckets.set(key, bucket);
    return bucket;
  }

  function refilled(key: Key, rate: Rate, nowMs: number): Bucket {
    const bucket = buckets.get(key) ?? addBucket(key, rate, nowMs);
    const come = ((nowMs - bucket.atMs) / 1000) * rate.perSecond;
    bucket.tokens = Math.min(capacity(rate.burst), bucket.tokens + come);
    bucket.atMs = nowMs;
    return bucket;
  }

  return {
    /** Takes a token and returns 0, or takes none and returns the milliseconds until there is one. */
    take(key: Key, rate: Rate, nowMs: number): number {
      const bucket = refilled(key, rate, nowMs);
      if (bucket.tokens < 1) return ((1 - bucket.tokens) / rate.perSecond) * 1000;
      bucket.tokens--;
      return 0;
    },
    /** Returns a token that was taken. */
    giveBack(key: Key, rate: Rate, nowMs: number): void {
      refilled(key, rate, nowMs).tokens++;
    },
    /** Takes tokens, into debt if there are not enough. */
    owe(key: Key, rate: Rate, nowMs: number, tokens: number): void {
      const bucket = refilled(key, rate, nowMs);
      bucket.tokens = Math.max(bucket.tokens - tokens, -MAX_DEBT_S * rate.perSecond);
    },
    /** Returns the milliseconds until the debt is paid; 0 without a debt. */
    owedMs(key: Key, rate: Rate, nowMs: number): number {
      const bucket = refilled(key, rate, nowMs);
      return Math.max(0, (-bucket.tokens / rate.perSecond) * 1000);
    },
  };
}

/** At least 1: a share of less than one operation must admit one from time to time. */
function capacity(burst: number): number {
  return Math.max(1, burst);
}
