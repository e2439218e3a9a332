import { Cluster } from "ioredis";
import { connectRedis, type RedisConnection } from "./redis-connection.ts";
import { parseRedisUrl, type RedisTarget } from "./redis-url.ts";

/** The state of one Redis server. */
export interface RedisFacts {
  readonly address: string;
  readonly role: "master" | "replica";
  /** Its limit of memory, in bytes; 0: none. */
  readonly maxMemoryBytes: number;
  /** Its eviction policy, such as `allkeys-lru`. */
  readonly evictionPolicy: string;
}

const READY_TIMEOUT_MS = 3000;

/**
 * Asks Redis for its state, on a connection of its own: the server, the sentinels' current master, or every
 * master of the cluster.
 *
 * @throws Error if Redis does not answer in time, or refuses INFO.
 */
export async function readRedisFacts(redisUrl: string): Promise<readonly RedisFacts[]> {
  const target = parseRedisUrl(redisUrl);
  if (target === undefined) throw new Error("REDIS_URL is malformed");
  let lastError: Error | undefined;
  const connection = connectRedis(
    () => target,
    "commands",
    (error) => {
      lastError = error;
    },
  );
  try {
    await untilReady(connection, () => lastError);
    if (!(connection instanceof Cluster)) return [parseInfo(addressOf(target), await connection.info())];
    return await Promise.all(
      connection.nodes("master").map(async (node) => {
        const { host = "", port = 0 } = node.options;
        return parseInfo(`${host}:${port}`, await node.info());
      }),
    );
  } finally {
    connection.disconnect();
  }
}

/** Returns a text for people. */
function addressOf(target: RedisTarget): string {
  switch (target.kind) {
    case "server":
      return `${target.node.host}:${target.node.port}`;
    case "socket":
      return target.path;
    case "sentinel":
      return `${target.master} of the sentinels`;
    case "cluster":
      return "the cluster";
  }
}

function untilReady(connection: RedisConnection, lastError: () => Error | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`Redis was not ready within ${READY_TIMEOUT_MS} ms`, { cause: lastError() }));
    }, READY_TIMEOUT_MS);
    connection.once("ready", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function parseInfo(address: string, info: string): RedisFacts {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
  return {
    address,
    role: field("role") === "master" ? "master" : "replica",
    maxMemoryBytes: Number(field("maxmemory")),
    evictionPolicy: field("maxmemory_policy"),
  };
}
