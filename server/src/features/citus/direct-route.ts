import type { Pool, Runner } from "../../core/store/pool.ts";
import { createBindToShard } from "./bind-to-shard.ts";
import type { ShardNode } from "./shard-map.ts";
import type { ShardRoute } from "./shard-route.ts";

/**
 * Maximum round trips at once to a node, and statements of each: the fewer round trips there are, the more statements,
 * and operations of each, travel together.
 */
const TURNS = { width: 2, tasks: 16 } as const;

const check = { name: "check_direct", text: "select" };

/**
 * Returns the route straight to the nodes, on connections of their own.
 *
 * @param coordinator draws fencing tokens.
 * @param openNode opens a pool of connections to a node.
 */
export function createDirectRoute(coordinator: Runner, openNode: (node: ShardNode) => Pool): ShardRoute {
  const pools = new Map<string, Pool>();
  const bindToShard = createBindToShard(coordinator);

  function poolOf(node: ShardNode): Pool {
    const address = addressOf(node);
    let pool = pools.get(address);
    if (pool === undefined) {
      pool = openNode(node);
      pools.set(address, pool);
    }
    return pool;
  }

  return {
    turns: TURNS,
    runnerOn: (node, shard) => async (statement, parameters, operations) => {
      const bound = await bindToShard(statement, shard, parameters);
      return await poolOf(node).run(bound.statement, bound.parameters, operations);
    },
    isAway: (node) => pools.get(addressOf(node))?.load().away === true,
    answers: (node) =>
      poolOf(node)
        .run(check, [])
        .then(
          () => true,
          () => false,
        ),
    keepOnly(nodes) {
      const kept = new Set(Array.from(nodes, addressOf));
      for (const [address, pool] of pools) {
        if (kept.has(address)) continue;
        pools.delete(address);
        void pool.close();
      }
    },
    async close(limitMs) {
      await Promise.all(Array.from(pools.values(), (pool) => pool.close(limitMs)));
    },
  };
}

function addressOf({ host, port }: ShardNode): string {
  return `${host}:${port}`;
}

/** Returns the URL of the same database on a node. A host that begins with "/" is the directory of a socket. */
export function nodeUrl(databaseUrl: string, { host, port }: ShardNode): string {
  const url = new URL(databaseUrl);
  url.searchParams.delete("host");
  url.searchParams.delete("port");
  if (host.startsWith("/")) url.searchParams.set("host", host);
  else url.hostname = host;
  url.port = String(port);
  return url.href;
}
