import { Cluster, Redis } from "ioredis";

/** A connection to Redis, however it is run. */
export type RedisConnection = Redis | Cluster;

/** Redis must be worth it: one that takes longer is passed over. */
const COMMAND_TIMEOUT_MS = 50;
const CONNECT_TIMEOUT_MS = 1000;
const MAX_RECONNECT_DELAY_MS = 1000;

/**
 * - `redis://` or `rediss://[user:password@]host[:port][/db]`: one server;
 * - `redis+sentinel://[user:password@]host:port,host:port/master-name`: whichever server the sentinels say is the master;
 * - `redis+unix:///path/to.sock`: one server, by its socket;
 * - `redis+cluster://[user:password@]host:port,host:port`: a cluster.
 *
 * `rediss+…` for TLS.
 */
export const REDIS_URL_FORMAT =
  /^(?<tls>rediss?)(?:\+(?<kind>sentinel|cluster|unix))?:\/\/(?:(?<user>[^:@/]*):(?<password>[^@/]*)@)?(?<hosts>[^/?]*)(?:\/(?<path>[^?]*))?$/;

/**
 * Connects in the background; until it has, commands fail at once.
 *
 * @throws if the URL is none of the forms.
 */
export function connectRedis(url: string, onError: (error: Error) => void): RedisConnection {
  const parts = REDIS_URL_FORMAT.exec(url)?.groups;
  if (parts === undefined)
    throw new Error("REDIS_URL is not redis://, redis+sentinel:// or redis+cluster://");
  const connection = open(parts);
  connection.on("error", onError);
  return connection;
}

function open(parts: Readonly<Record<string, string | undefined>>): RedisConnection {
  const { tls, kind, user, password, hosts = "", path = "" } = parts;
  const common = {
    ...(user && { username: decodeURIComponent(user) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(tls === "rediss" && { tls: {} }),
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  };
  // Commands of one turn of the event loop leave in one write. Not with a cluster: a MOVED would lose some.
  const single = { ...common, retryStrategy: reconnectDelayMs, enableAutoPipelining: true };
  if (kind === "unix") return new Redis({ ...single, path: `/${path}` });
  const nodes = hosts.split(",").map(parseNode);
  switch (kind) {
    case "cluster":
      return new Cluster(nodes, {
        redisOptions: common,
        enableOfflineQueue: false,
        clusterRetryStrategy: reconnectDelayMs,
        // A MOVED is followed once or twice; more would take longer than Postgres.
        maxRedirections: 2,
      });
    case "sentinel":
      return new Redis({ ...common, sentinels: nodes, name: path, retryStrategy: reconnectDelayMs });
    default:
      return new Redis({
        ...single,
        ...(nodes[0] ?? {}),
        db: Number(path || 0),
      });
  }
}

const DEFAULT_PORT = 6379;

function parseNode(text: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`tcp://${text}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? DEFAULT_PORT : Number(port) };
}

function reconnectDelayMs(attempts: number): number {
  return Math.min(attempts * 50, MAX_RECONNECT_DELAY_MS);
}
