import type { Logger } from "pino";
import type { Metrics } from "../telemetry/metrics.ts";
import { createMemoryCache } from "./memory.ts";
import { createRedisCache, type RedisCache } from "./redis.ts";
import { connectRedis } from "./redis-connection.ts";
import { parseRedisUrl } from "./redis-url.ts";
import { createReplayCache, type ReplayCache } from "./replay-cache.ts";
import { createWakeChannel, type WakeChannel } from "./wake-channel.ts";

/** The fast path of one replica. */
export interface ReplicaCache {
  readonly replayCache: ReplayCache;
  /** Undefined where there is no Redis. */
  readonly wakeChannel: WakeChannel | undefined;
  /** What memory holds, in bytes. */
  readonly bytes: () => number;
  /** Whether Redis is configured but being passed over. */
  readonly redisBypassed: () => boolean;
  /** The installation has another id: drops the copies in memory, and hears only who knows that id. */
  moveTo(installationId: string): void;
  close(): void;
}

export interface ReplicaCacheOptions {
  readonly maxBytes: number;
  /** Undefined: memory alone. */
  readonly redisUrl: string | undefined;
  /** As it is now; `moveTo` tells another. */
  readonly installationId: string;
  /** Keys the digest of what is kept in Redis; the same on every replica. */
  readonly secret: string;
  /** A record, named by `recordName`, may have been settled on another replica. */
  readonly onSettled: (name: string) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** What goes wrong with Redis goes wrong with every command: the metric counts each time, the log says it now and then. */
const WARNING_INTERVAL_MS = 60_000;

/** @see ReplicaCache */
export function openReplicaCache(options: ReplicaCacheOptions): ReplicaCache {
  const { maxBytes, redisUrl, secret, metrics } = options;
  const memory = createMemoryCache(maxBytes);
  const redis = redisUrl === undefined ? undefined : openRedis(redisUrl, options);
  return {
    replayCache: createReplayCache({
      memory,
      redis: redis?.cache,
      secret,
      onLookup: metrics.countCacheLookup,
    }),
    wakeChannel: redis?.wakeChannel,
    bytes: memory.bytes,
    redisBypassed: () => redis?.cache.isBypassed() ?? false,
    moveTo(installationId) {
      memory.clear();
      redis?.wakeChannel.moveTo(installationId);
    },
    close: () => redis?.close(),
  };
}

interface OpenRedis {
  readonly cache: RedisCache;
  readonly wakeChannel: WakeChannel;
  close(): void;
}

function openRedis(url: string, { installationId, onSettled, metrics, log }: ReplicaCacheOptions): OpenRedis {
  const target = parseRedisUrl(url);
  if (target === undefined) throw new Error("REDIS_URL is malformed");
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  let closed = false;
  const failed = (error: unknown) => {
    // What was under way when the connection was closed fails with it: that says nothing of Redis.
    if (closed) return;
    metrics.redisErrors.inc();
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    log.warn({ err: error }, "Redis is in trouble; Postgres answers what Redis can't");
    warnedAtMs = performance.now();
  };
  const isBack = () => {
    if (Number.isFinite(warnedAtMs)) log.info("Redis is back");
    warnedAtMs = Number.NEGATIVE_INFINITY;
  };
  const connection = connectRedis(target, "commands", failed);
  const cache = createRedisCache(connection, {
    failed,
    bypassed: (is) => {
      if (!is) isBack();
    },
  });
  connection.on("ready", isBack);
  const subscriber = connectRedis(target, "subscriptions", () => {
    if (!closed) metrics.redisErrors.inc();
  });
  const wakeChannel = createWakeChannel({ publisher: cache, subscriber, installationId, onSettled });
  return {
    cache,
    wakeChannel,
    close() {
      closed = true;
      wakeChannel.close();
      cache.stop();
      connection.disconnect();
    },
  };
}
