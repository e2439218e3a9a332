import { Refusal } from "../../domain/refusal.ts";
import { createTurns, type Turns } from "../batching/turns.ts";
import type { Pool, Runner } from "../pool.ts";
import { isUnreachableNode, StatementFailed } from "../statement-errors.ts";
import { createDirectNodes } from "./direct-nodes.ts";
import { MOVED_STATES } from "./shard-guard.ts";
import {
  agreesWithCitus,
  type PlacedShard,
  reachesNode,
  readShardMap,
  type ShardNode,
  shardOf,
} from "./shard-map.ts";

/** A part of the table of records that lies on one node. */
export interface Shard {
  /** Citus' number of the shard. */
  readonly id: number;
}

/** The shards of the table of records on Citus. */
export interface Shards {
  readonly count: number;
  /** Returns the shard of a key. */
  of(key: string): Shard;
  /** Returns the turns of all statements on the node that holds the shard now. */
  turnsOf(shard: Shard): Turns;
  /**
   * Returns a function that runs statements whose records all lie in `shard`. If the shard's node did not answer a
   * moment ago, it throws DATABASE_UNAVAILABLE and does not run the statement.
   */
  runnerOn(shard: Shard): Runner["run"];
  /** Reads again where the shards are, and tries the nodes that did not answer. */
  refresh(): Promise<void>;
  /** Returns the number of nodes that did not answer their last statement. */
  awayNodes(): number;
  /** Closes the connections to the nodes. */
  close(): Promise<void>;
}

export interface ShardsOptions {
  /** Called if this process finds other shards for sample keys than Citus. */
  readonly onMismatch: () => void;
  /**
   * Opens a pool of connections to a node; then statements of a shard are sent to its node. Unset: they are sent to
   * the coordinator.
   */
  readonly openNode?: ((node: ShardNode) => Pool) | undefined;
}

/**
 * Maximum statements in flight on a node: while one commits, others run and one is on its way. A node that hangs
 * holds this many of the pool's connections, and leaves the others to other nodes.
 */
export const MAX_IN_FLIGHT_BY_NODE = 4;
/**
 * The same for round trips straight to a node: the fewer there are, the more statements, and operations of each, travel
 * together.
 */
const DIRECT_TURNS = { width: 2, tasks: 16 } as const;
/** How long no statement is sent to a node that did not answer; also the retry delay for callers. */
const PAUSE_MS = 500;

/**
 * Reads the shards of the table of records. Returns undefined on a plain Postgres, if the table is not distributed,
 * and if this process finds other shards for sample keys than Citus: then it calls `onMismatch`, and statements are
 * correct and slow, because each may touch all shards.
 */
export async function openShards(pool: Pool, options: ShardsOptions): Promise<Shards | undefined> {
  const placed = await readShardMap(pool);
  if (placed === undefined) return undefined;
  if (await agreesWithCitus(pool, placed)) return createShards(pool, placed, options);
  options.onMismatch();
  return undefined;
}

function createShards(pool: Pool, initial: readonly PlacedShard[], { openNode }: ShardsOptions): Shards {
  let placed = initial;
  let nodes = nodesByShard(placed);
  const direct = openNode && createDirectNodes(pool, openNode);
  const turnsByNode = new Map<number, Turns>();
  /** When the next statement may be sent to a node that did not answer, by the node's id. */
  const pausedUntilMs = new Map<number, number>();

  async function refresh(): Promise<void> {
    placed = (await readShardMap(pool)) ?? placed;
    nodes = nodesByShard(placed);
    direct?.keepOnly(nodes.values());
  }

  async function isBack(id: number): Promise<boolean> {
    const node = placed.find((shard) => shard.node.id === id)?.node;
    if (node === undefined) return true;
    return direct === undefined ? await reachesNode(pool, node) : await direct.answers(node);
  }

  /** Runs a statement on the shard's node, or by the coordinator if the shard is no longer there. */
  function runnerOn(node: ShardNode, shard: Shard): Runner["run"] {
    if (direct === undefined) return pool.run;
    const run = direct.runnerOn(node, shard.id);
    return async (statement, parameters, operations) => {
      try {
        return await run(statement, parameters, operations);
      } catch (error) {
        if (!(error instanceof StatementFailed && MOVED_STATES.includes(error.sqlState))) throw error;
        await refresh();
        return await pool.run(statement, parameters, operations);
      }
    };
  }

  function isUnreachable(node: ShardNode, error: unknown): boolean {
    return direct === undefined ? isUnreachableNode(error) : direct.isAway(node);
  }

  return {
    get count() {
      return placed.length;
    },
    of: (key) => shardOf(placed, key),
    turnsOf(shard) {
      const node = nodes.get(shard.id)?.id ?? NO_NODE;
      let turns = turnsByNode.get(node);
      if (turns === undefined) {
        turns = createTurns(direct === undefined ? { width: MAX_IN_FLIGHT_BY_NODE } : DIRECT_TURNS);
        turnsByNode.set(node, turns);
      }
      return turns;
    },
    runnerOn: (shard) => async (statement, parameters, operations) => {
      const node = nodes.get(shard.id);
      if (node === undefined) return await pool.run(statement, parameters, operations);
      if ((pausedUntilMs.get(node.id) ?? 0) > performance.now()) throw nodeAway();
      try {
        const rows = await runnerOn(node, shard)<never>(statement, parameters, operations);
        pausedUntilMs.delete(node.id);
        return rows;
      } catch (error) {
        if (isUnreachable(node, error)) pausedUntilMs.set(node.id, performance.now() + PAUSE_MS);
        throw error;
      }
    },
    async refresh() {
      await refresh();
      for (const id of pausedUntilMs.keys()) if (await isBack(id)) pausedUntilMs.delete(id);
    },
    awayNodes: () => pausedUntilMs.size,
    close: async () => direct?.close(),
  };
}

/** Stands for the node of shards that were divided. */
const NO_NODE = -1;

function nodesByShard(placed: readonly PlacedShard[]): ReadonlyMap<number, ShardNode> {
  return new Map(placed.map(({ id, node }) => [id, node]));
}

function nodeAway(): Refusal {
  return new Refusal("DATABASE_UNAVAILABLE", "The node of the database that holds the key does not answer.", {
    retryAfterMs: PAUSE_MS,
  });
}
