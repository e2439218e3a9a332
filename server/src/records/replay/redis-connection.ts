import type { Socket } from "node:net";
import { AbstractConnector, Cluster, Redis, type RedisOptions } from "ioredis";
import type { RedisTarget } from "./redis-url.ts";

/**
 * Ignores the second and later errors of every socket of ioredis.
 *
 * ioredis listens for one error of a socket. Over TLS there can be two: one of a refused certificate or an
 * alert, and one of a write in flight. The second would be unhandled and end the process, although the
 * connection is already closed. All sockets pass through this property, also those that no option of ioredis
 * reaches: connections to sentinels, and a cluster's subscriber.
 *
 * @see https://github.com/redis/ioredis/pull/962
 */
function surviveSecondErrors(): void {
  const sockets = new WeakMap<AbstractConnector, Socket>();
  Object.defineProperty(AbstractConnector.prototype, "stream", {
    configurable: true,
    get(this: AbstractConnector) {
      return sockets.get(this);
    },
    set(this: AbstractConnector, socket: Socket) {
      socket.on("error", () => {});
      sockets.set(this, socket);
    },
  });
}

/** A connection to a Redis server, behind sentinels or not, or to a cluster. */
export type RedisConnection = Redis | Cluster;

surviveSecondErrors();

const CONNECT_TIMEOUT_MS = 1000;
/**
 * A connection whose reply is overdue by this time is closed and opened again; for a cluster, after reading
 * its slots again.
 */
const SILENCE_TIMEOUT_MS = 1000;
const MAX_RECONNECT_DELAY_MS = 1000;
/** Minimum time between reconnects after a server became a replica: its name may lead to the new master. */
const READ_ONLY_RECONNECT_INTERVAL_MS = 1000;

/**
 * Connects in the background and reconnects when the connection is lost or refused. Without a connection,
 * commands fail at once.
 *
 * @param current returns the target with the credentials for the next connection: they may have changed.
 * @param purpose commands or subscriptions; the caller renews its subscriptions after each event "ready".
 */
export function connectRedis(
  current: () => RedisTarget,
  purpose: "commands" | "subscriptions",
  onError: (error: Error) => void,
): RedisConnection {
  const connection = create(current(), purpose);
  connection.on("error", onError);
  connection.on("node error", onError);
  if (connection instanceof Redis) readCredentialsAtConnect(connection, current);
  else connection.on("+node", (node: Redis) => readCredentialsAtConnect(node, current));
  return connection;
}

/**
 * Has the connection take the credentials of each reconnect from `current`. ioredis reads its options when it connects; a
 * cluster copies those of a node for its subscriber.
 */
function readCredentialsAtConnect({ options }: Redis, current: () => RedisTarget): void {
  Object.defineProperties(options, {
    username: { enumerable: true, get: () => current().username },
    password: { enumerable: true, get: () => current().password },
  });
}

function create(target: RedisTarget, purpose: "commands" | "subscriptions"): RedisConnection {
  const options = commonOptions(target);
  const single = {
    ...options,
    retryStrategy: reconnectDelayMs,
    reconnectOnError: createReadOnlyDetector(),
    // ioredis' own renewal leaves its errors unhandled, which would end the process.
    autoResubscribe: false,
    // Commands of one turn of the event loop are sent in one write. Not with a cluster: ioredis would drop
    // some on a MOVED.
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
        // More redirects would take longer than Postgres.
        maxRedirections: 2,
        // Certificates contain names: the host must stay a name until it is compared.
        ...(target.tls && { dnsLookup: (host, found) => found(null, host) }),
      });
  }
}

function commonOptions(target: RedisTarget) {
  const { username, password } = target;
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(target.tls && { tls: {} }),
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
