import type { Pool, Runner, Statement } from "../database/pool.ts";
import { requireTimeToResend } from "../database/statement-errors.ts";
import type { Shard, Shards } from "../records/engine/shards.ts";
import { createTurns, type Turns } from "../records/engine/turns.ts";
import { addressOf, createNodes, type Nodes, type NodesOptions } from "./nodes.ts";
import { canHoldShards, isMoved } from "./shard-guard.ts";
import { agreesWithCitus, type PlacedShard, readShardMap, type ShardNode, shardOf } from "./shard-map.ts";
import { type ShardStatement, shardStatement } from "./shard-statement.ts";

export interface ShardsOptions extends NodesOptions {
  /**
   * Called with the reason if statements are not grouped by shard: they are correct and slow, because each may touch all
   * shards.
   */
  readonly onUngrouped: (reason: string) => void;
}

/**
 * Maximum round trips at once to a node, and statements of each: the fewer round trips there are, the more statements,
 * and operations of each, travel together.
 */
const TURNS = { width: 2, tasks: 16 } as const;

/**
 * Reads the shards of the table of records, and tries their nodes. Returns undefined on a plain Postgres, if the table is
 * not distributed, and after a call of `onUngrouped`.
 *
 * @param coordinator runs statements on all of the records.
 * @throws Error if no node answers. With some of them unreachable, the keys of the others are served.
 */
export async function openShards(
  coordinator: Pool,
  { onUngrouped, ...options }: ShardsOptions,
): Promise<Shards | undefined> {
  const placed = await readShardMap(coordinator);
  if (placed === undefined) return undefined;
  const reason = await whyUngrouped(coordinator, placed);
  if (reason !== undefined) {
    onUngrouped(reason);
    return undefined;
  }
  const nodes = createNodes(options);
  await requireNode(nodes, [...new Set(placed.map(({ node }) => node))]);
  return createShards(coordinator, placed, nodes);
}

async function whyUngrouped(
  coordinator: Runner,
  placed: readonly PlacedShard[],
): Promise<string | undefined> {
  if (!(await canHoldShards(coordinator)))
    return "a function is missing: run onceward-server migrate --citus";
  if (!(await agreesWithCitus(coordinator, placed)))
    return "the shards of sample keys are not those of Citus";
  return undefined;
}

/** Tries all nodes. Closes the connections and throws if none answers. */
async function requireNode(nodes: Nodes, all: readonly ShardNode[]): Promise<void> {
  const settled = await Promise.allSettled(all.map(nodes.check));
  const failures = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  if (failures.length < all.length) return;
  await nodes.close();
  const addresses = all.map(addressOf).join(", ");
  throw new Error(
    `This replica can serve no key, because it does not reach any of the nodes that hold the records: ${addresses}.`,
    { cause: failures[0] },
  );
}

function createShards(coordinator: Pool, initial: readonly PlacedShard[], nodes: Nodes): Shards {
  /** By their prepared name. */
  const statements = new Map<string, ShardStatement>();
  const turnsByNode = new Map<number, Turns>();
  let placed = initial;
  let nodeOf = nodesByShard(placed);
  let reading: Promise<void> | undefined;

  /** While no statement may hold a shard, no shard has a node, and Citus plans all statements. */
  async function readAgain(): Promise<void> {
    const found = await readShardMap(coordinator);
    placed = found ?? placed;
    nodeOf = nodesByShard(found !== undefined && (await canHoldShards(coordinator)) ? found : []);
    nodes.keepOnly(nodeOf.values());
  }

  function readOnce(): Promise<void> {
    reading ??= readAgain().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  function onShard(statement: Statement, shard: number): ShardStatement {
    const name = `${statement.name}_${shard}`;
    let found = statements.get(name);
    if (found === undefined) {
      found = shardStatement(statement, shard);
      statements.set(name, found);
    }
    return found;
  }

  /**
   * Runs a statement on the shard's table, or on all of the records if the shard is no longer on the node.
   *
   * @throws Refusal DATABASE_UNAVAILABLE if the node, or the new map, took so long that another statement would have its effect too late.
   */
  function runnerOn(node: ShardNode, shard: Shard): Runner["run"] {
    return async (statement, parameters, operations) => {
      const sentAtMs = performance.now();
      try {
        return await nodes.use(node, (runner) =>
          runner.run<never>(onShard(statement, shard.id), parameters, operations),
        );
      } catch (error) {
        if (!isMoved(error, shard.id)) throw error;
        await readOnce();
        requireTimeToResend(sentAtMs, error);
        return await coordinator.run(statement, parameters, operations);
      }
    };
  }

  return {
    get count() {
      return placed.length;
    },
    of: (key) => shardOf(placed, key),
    turnsOf(shard) {
      const node = nodeOf.get(shard.id)?.id ?? NO_NODE;
      let turns = turnsByNode.get(node);
      if (turns === undefined) {
        turns = createTurns(TURNS);
        turnsByNode.set(node, turns);
      }
      return turns;
    },
    runnerOn: (shard) => async (statement, parameters, operations) => {
      const node = nodeOf.get(shard.id);
      const run = node === undefined ? coordinator.run : runnerOn(node, shard);
      return await run<never>(statement, parameters, operations);
    },
    async refresh() {
      await readOnce();
      await Promise.allSettled([...nodes.unreachable().map(nodes.check), nodes.readClocks()]);
    },
    unreachableNodes: () => nodes.unreachable().length,
    clocks: nodes.clocks,
    close: nodes.close,
  };
}

/** Stands for the node of shards that were divided, or that are not used alone. */
const NO_NODE = -1;

function nodesByShard(placed: readonly PlacedShard[]): ReadonlyMap<number, ShardNode> {
  return new Map(placed.map(({ id, node }) => [id, node]));
}
