import { LRUCache } from "lru-cache";

/** How fast a tenant may go on this replica. */
export interface Rate {
  readonly perSecond: number;
  /** How many operations may come at once. */
  readonly burst: number;
}

/** A token bucket for each tenant: operations take a token each, and tokens come back at the tenant's rate. */
export interface RateLimit {
  /** Takes a token and answers 0, or takes none and answers in how many milliseconds there is one. */
  take(tenantId: number, rate: Rate, nowMs: number): number;
  /** Takes tokens that may not be there yet. */
  owe(tenantId: number, rate: Rate, nowMs: number, tokens: number): void;
  /** Returns in how many milliseconds what is owed has come back; 0 if nothing is. */
  owedMs(tenantId: number, rate: Rate, nowMs: number): number;
}

interface Bucket {
  /** Negative: owed. */
  tokens: number;
  /** When it was as it says. */
  atMs: number;
}

/** A tenant that settles more than it may claim waits no longer than this once it has stopped. */
const MAX_DEBT_S = 10;
/** Beyond this the bucket goes that was used longest ago: its tenant has a burst anew. */
const MAX_BUCKETS = 20_000;

/** @see RateLimit */
export function createRateLimit(): RateLimit {
  const buckets = new LRUCache<number, Bucket>({ max: MAX_BUCKETS });

  function addBucket(tenantId: number, { burst }: Rate, nowMs: number): Bucket {
    const bucket = { tokens: capacity(burst), atMs: nowMs };
    buckets.set(tenantId, bucket);
    return bucket;
  }

  function refilled(tenantId: number, rate: Rate, nowMs: number): Bucket {
    const bucket = buckets.get(tenantId) ?? addBucket(tenantId, rate, nowMs);
    const come = ((nowMs - bucket.atMs) / 1000) * rate.perSecond;
    bucket.tokens = Math.min(capacity(rate.burst), bucket.tokens + come);
    bucket.atMs = nowMs;
    return bucket;
  }

  return {
    take(tenantId, rate, nowMs) {
      const bucket = refilled(tenantId, rate, nowMs);
      if (bucket.tokens < 1) return ((1 - bucket.tokens) / rate.perSecond) * 1000;
      bucket.tokens--;
      return 0;
    },
    owe(tenantId, rate, nowMs, tokens) {
      const bucket = refilled(tenantId, rate, nowMs);
      bucket.tokens = Math.max(bucket.tokens - tokens, -MAX_DEBT_S * rate.perSecond);
    },
    owedMs(tenantId, rate, nowMs) {
      const bucket = refilled(tenantId, rate, nowMs);
      return Math.max(0, (-bucket.tokens / rate.perSecond) * 1000);
    },
  };
}

/** A share of less than one operation must let one through now and then. */
function capacity(burst: number): number {
  return Math.max(1, burst);
}
