import type { Logger } from "pino";
import type { Metrics } from "../telemetry/metrics.ts";
import { createBreaker } from "./breaker.ts";
import { type Completions, createCompletions } from "./completions.ts";
import { createMemoryCache } from "./memory.ts";
import { createRedisCache } from "./redis.ts";
import { connectRedis } from "./redis-connection.ts";

/** The fast path of one replica. */
export interface FastPath {
  readonly completions: Completions;
  /** What memory holds, in bytes. */
  readonly bytes: () => number;
  /** Whether Redis is configured but being passed over. */
  readonly redisBypassed: () => boolean;
  close(): void;
}

export interface FastPathOptions {
  readonly maxBytes: number;
  /** Undefined: memory alone. */
  readonly redisUrl: string | undefined;
  readonly installationId: string;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Three time-outs in a row cost 150 ms once; from then on Redis is asked once a second whether it is back. */
const BREAKER = { maxFailures: 3, pauseMs: 1000 };

/** @see FastPath */
export function openFastPath({
  maxBytes,
  redisUrl,
  installationId,
  metrics,
  log,
}: FastPathOptions): FastPath {
  const memory = createMemoryCache(maxBytes);
  const breaker = createBreaker(BREAKER);
  let trouble = false;
  const connection =
    redisUrl === undefined
      ? undefined
      : connectRedis(redisUrl, (error) => {
          metrics.redisErrors.inc();
          // A Redis that is away says so at every attempt to reconnect: the log has the first, the metric all.
          if (!trouble) log.warn({ err: error }, "Redis is in trouble; repeats are answered by Postgres");
          trouble = true;
        });
  connection?.on("ready", () => {
    if (trouble) log.info("Redis is back");
    trouble = false;
  });
  const completions = createCompletions({
    memory,
    redis: connection && createRedisCache(connection, breaker),
    installationId,
    onLook: (layer, result) => metrics.cacheRequests.inc({ layer, result }),
  });
  return {
    completions,
    bytes: memory.bytes,
    redisBypassed: () => connection !== undefined && (breaker.isOpen() || connection.status !== "ready"),
    close: () => connection?.disconnect(),
  };
}
