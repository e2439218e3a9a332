import type { Pool, Runner } from "../pool.ts";
import { takeOverRecords } from "../records/claim-statements.ts";
import { type DirectStatement, directStatement } from "./direct-statement.ts";
import type { ShardNode } from "./shard-map.ts";
import { createTokenStock } from "./token-stock.ts";

/** Connections to the nodes that hold shards. */
export interface DirectNodes {
  /** Returns a function that runs statements on the table of a shard, on the node that holds it. */
  runnerOn(node: ShardNode, shard: number): Runner["run"];
  /** Returns whether the last statement on a node ended because the node did not answer. */
  isAway(node: ShardNode): boolean;
  /** Returns whether a node answers a statement now. */
  answers(node: ShardNode): Promise<boolean>;
  /** Closes the connections to all other nodes than these. */
  keepOnly(nodes: Iterable<ShardNode>): void;
  close(): Promise<void>;
}

const check = { name: "check_direct", text: "select" };

/**
 * @param coordinator draws fencing tokens.
 * @param openNode opens a pool of connections to a node.
 */
export function createDirectNodes(coordinator: Runner, openNode: (node: ShardNode) => Pool): DirectNodes {
  const pools = new Map<string, Pool>();
  const tokens = createTokenStock(coordinator);
  /** By the name of the statement on the shard's table. */
  const statements = new Map<string, DirectStatement>();

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
    runnerOn: (node, shard) => async (statement, parameters, operations) => {
      const name = `${statement.name}_${shard}`;
      let direct = statements.get(name);
      if (direct === undefined) {
        direct = directStatement(statement, shard, parameters.length);
        statements.set(name, direct);
      }
      if (!direct.takesToken) return await poolOf(node).run(direct, parameters, operations);
      const changesRows = statement.name === takeOverRecords.name;
      const token = await (changesRows ? tokens.forExistingRows() : tokens.forNewRows());
      return await poolOf(node).run(direct, [...parameters, token], operations);
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
    async close() {
      await Promise.all(Array.from(pools.values(), (pool) => pool.close()));
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
