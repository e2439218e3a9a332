import { Cluster, Redis, type RedisOptions } from "ioredis";
import { surviveSecondErrors } from "./redis-sockets.ts";
import type { RedisTarget } from "./redis-url.ts";

/** A connection to Redis, however it is run. */
export type RedisConnection = Redis | Cluster;

surviveSecondErrors();

const CONNECT_TIMEOUT_MS = 1000;
/** A connection that owes an answer for so long is given up and made anew, of a cluster after asking who serves what. */
const SILENCE_TIMEOUT_MS = 1000;
const MAX_RECONNECT_DELAY_MS = 1000;
/** A server that turned into a replica is left for the one that its name leads to now, at most this often. */
const READ_ONLY_RECONNECT_INTERVAL_MS = 1000;

/**
 * Connects in the background, and again whenever the connection is lost; until it has, commands fail at once.
 *
 * @param purpose whether commands run on it, or subscriptions, which whoever makes them renews after each "ready".
 */
export function connectRedis(
  target: RedisTarget,
  purpose: "commands" | "subscriptions",
  onError: (error: Error) => void,
): RedisConnection {
  const connection = open(target, purpose);
  connection.on("error", onError);
  connection.on("node error", onError);
  return connection;
}

function open(target: RedisTarget, purpose: "commands" | "subscriptions"): RedisConnection {
  const options = commonOptions(target);
  const single = {
    ...options,
    retryStrategy: reconnectDelayMs,
    reconnectOnError: createReadOnlyDetector(),
    // The library's own renewal leaves its errors unhandled, which would end the process.
    autoResubscribe: false,
    // Commands of one turn of the event loop leave in one write. Not with a cluster: a MOVED would lose some.
    enableAutoPipelining: purpose === "commands",
  };
  switch (target.kind) {
    case "server":
      return new Redis({ ...single, ...target.node, db: target.database });
    case "socket":
      return new Redis({ ...single, path: target.path });
    case "sentinel":
      return new Redis({
        ...single,
        sentinels: [...target.sentinels],
        name: target.master,
        sentinelRetryStrategy: reconnectDelayMs,
        sentinelCommandTimeout: SILENCE_TIMEOUT_MS,
        ...(target.tls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
      });
    case "cluster":
      return new Cluster([...target.nodes], {
        redisOptions: options,
        enableOfflineQueue: false,
        clusterRetryStrategy: reconnectDelayMs,
        // A MOVED is followed once or twice; more would take longer than Postgres.
        maxRedirections: 2,
        // Certificates are of names: a name must not become an address before they are compared.
        ...(target.tls && { dnsLookup: (host, found) => found(null, host) }),
      });
  }
}

function commonOptions({ username, password, tls }: RedisTarget) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  } satisfies RedisOptions;
}

function createReadOnlyDetector(): (error: Error) => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (!message.startsWith("READONLY")) return false;
    if (performance.now() - lastMs < READ_ONLY_RECONNECT_INTERVAL_MS) return false;
    lastMs = performance.now();
    return true;
  };
}

function reconnectDelayMs(attempts: number): number {
  return Math.min(attempts * 50, MAX_RECONNECT_DELAY_MS);
}
