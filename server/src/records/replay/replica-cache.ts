import type { Logger } from "pino";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { EntryFormat } from "./entry-format.ts";
import { createMemoryCache } from "./memory.ts";
import { createRedisCache } from "./redis.ts";
import { connectRedis } from "./redis-connection.ts";
import { parseRedisUrl, type RedisTarget } from "./redis-url.ts";
import { createReplayCache } from "./replay-cache.ts";
import { createWakeChannel } from "./wake-channel.ts";

/** The replay cache of one replica and its connections to Redis. */
export type ReplicaCache = ReturnType<typeof openReplicaCache>;

export interface ReplicaCacheOptions {
  readonly maxBytes: number;
  /** Returns the URL with the credentials for the next connection; undefined: there is no Redis. */
  readonly redisUrl: () => string | undefined;
  /** The current id; `moveTo` changes it. */
  readonly installationId: string;
  /** How completions are held in memory and stored in Redis. */
  readonly format: EntryFormat;
  /** A record, named by `recordName`, may have been settled on another replica. */
  readonly onSettled: (name: string) => void;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/**
 * During an outage of Redis every command fails: the metric counts each failure, the log has one line per
 * interval.
 */
const WARNING_INTERVAL_MS = 60_000;

/** Opens a replica cache. */
export function openReplicaCache(options: ReplicaCacheOptions) {
  const { maxBytes, redisUrl, format, metrics } = options;
  const memory = createMemoryCache(maxBytes);
  const redis = openRedis(redisUrl, options);
  return {
    replayCache: createReplayCache({
      memory,
      redis: redis?.cache,
      format,
      onLookup: metrics.countCacheLookup,
    }),
    /** Undefined if Redis is not configured. */
    wakeChannel: redis?.wakeChannel,
    /** Returns the memory that cached completions take, in bytes. */
    bytes: memory.bytes,
    /** Returns whether Redis is configured but not used now. */
    redisBypassed: () => redis?.cache.isBypassed() ?? false,
    /**
     * Changes the installation's id: empties the memory cache, and listens only to replicas with the new id.
     */
    moveTo(installationId: string): void {
      memory.clear();
      redis?.wakeChannel.moveTo(installationId);
    },
    close: () => redis?.close(),
  };
}

function targetOf(url: string): RedisTarget {
  const target = parseRedisUrl(url);
  if (target === undefined) throw new Error("REDIS_URL is malformed");
  return target;
}

function openRedis(
  url: () => string | undefined,
  { installationId, onSettled, metrics, log }: ReplicaCacheOptions,
) {
  const initial = url();
  if (initial === undefined) return undefined;
  const current = () => targetOf(url() ?? initial);
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  let closed = false;
  const failed = (error: unknown) => {
    // Closing the connection fails the commands in flight: not an error of Redis.
    if (closed) return;
    metrics.redisErrors.inc();
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    log.warn({ err: error }, "Redis failed; Postgres answers in its place");
    warnedAtMs = performance.now();
  };
  const recovered = () => {
    if (Number.isFinite(warnedAtMs)) log.info("Redis works again");
    warnedAtMs = Number.NEGATIVE_INFINITY;
  };
  const connection = connectRedis(current, "commands", failed);
  const cache = createRedisCache(connection, {
    failed,
    onBypassed: (bypassed) => {
      if (!bypassed) recovered();
    },
  });
  connection.on("ready", recovered);
  const subscriber = connectRedis(current, "subscriptions", () => {
    if (!closed) metrics.redisErrors.inc();
  });
  const wakeChannel = createWakeChannel({ publisher: cache, subscriber, installationId, onSettled });
  return {
    cache,
    wakeChannel,
    close(): void {
      closed = true;
      wakeChannel.close();
      cache.stop();
      connection.disconnect();
    },
  };
}
