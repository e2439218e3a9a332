import { once } from "node:events";
import { Cluster } from "ioredis";
import { connectRedis, type RedisConnection } from "../../../../server/src/core/cache/redis-connection.ts";
import { createRedisSetter, type Setting } from "../../../../server/src/core/cache/redis-setter.ts";
import { parseRedisUrl } from "../../../../server/src/core/cache/redis-url.ts";
import type { Bench, Figure } from "../figure.ts";
import type { Finding } from "../finding.ts";
import { startCluster, startServer } from "../redis-cluster.ts";
import { median } from "../statistics.ts";

/** As many copies as one statement of many callers completes. */
const COPIES = 128;
const BYTES = 300;
const LIFETIME_MS = 60_000;

/** Stores copies; resolves once they are stored. */
type Store = (copies: readonly Setting[]) => Promise<unknown>;

/**
 * Measures P16: this process' processor time for a copy in a Redis Cluster of three nodes, beside a single
 * server and beside one command for each copy.
 */
export const measureCopies: Figure = async (bench) => {
  const { redisProgram } = bench.rig;
  if (redisProgram === undefined) return [];
  await using server = await startServer(redisProgram);
  await using cluster = await startCluster(redisProgram);
  const [single, grouped] = [await connect(server.url), await connect(cluster.url)];
  try {
    return [await compare(bench, single, grouped)];
  } finally {
    single.disconnect();
    grouped.disconnect();
  }
};

async function compare(
  { pace, progress, signal }: Bench,
  single: RedisConnection,
  cluster: RedisConnection,
): Promise<Finding> {
  const stores = {
    cluster: createRedisSetter(cluster),
    single: createRedisSetter(single),
    each: (copies: readonly Setting[]) =>
      Promise.all(copies.map(({ name, bytes, lifetimeMs }) => cluster.set(name, bytes, "PX", lifetimeMs))),
  } satisfies Record<string, Store>;
  const sides = Object.keys(stores) as (keyof typeof stores)[];
  const costs = new Map(sides.map((side) => [side, [] as number[]]));
  progress(`copies in a Redis Cluster of three nodes, ${COPIES} a turn`);
  for (const side of sides) await timeOf(stores[side], pace.warmUpMs);
  for (let slice = 0; slice < pace.slices; slice++) {
    for (const side of sides) {
      signal.throwIfAborted();
      costs.get(side)?.push(await timeOf(stores[side], pace.sliceMs));
    }
  }
  const cost = (side: keyof typeof stores) => median(costs.get(side) ?? []);
  return {
    figure: "P16",
    what: `processor time of a replica for a copy, Redis Cluster of 3 ÷ one server, ${COPIES} copies a turn`,
    value: cost("cluster") / cost("single"),
    unit: "×",
    raw: {
      "cluster µs": cost("cluster"),
      "server µs": cost("single"),
      "cluster, one command each, µs": cost("each"),
    },
  };
}

/** Returns this process' processor time for a copy, in microseconds. */
async function timeOf(store: Store, sliceMs: number): Promise<number> {
  const startedAtMs = performance.now();
  const before = process.cpuUsage();
  let copies = 0;
  while (performance.now() - startedAtMs < sliceMs) {
    const from = copies;
    await store(
      Array.from({ length: COPIES }, (_, n) => ({
        name: `onceward:${process.pid}:${(from + n) % 20_000}`,
        bytes: Buffer.alloc(BYTES, n),
        lifetimeMs: LIFETIME_MS,
      })),
    );
    copies += COPIES;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / copies;
}

async function connect(url: string): Promise<RedisConnection> {
  const target = parseRedisUrl(url);
  if (target === undefined) throw new Error("the URL is malformed");
  const connection = connectRedis(
    () => target,
    "commands",
    () => {},
  );
  await once(connection, "ready");
  // A node is connected by its first command.
  if (connection instanceof Cluster) await Promise.all(connection.nodes("master").map((node) => node.ping()));
  return connection;
}
