import { Refusal } from "../../core/domain/refusal.ts";
import type { Shard, Shards } from "../../core/store/batching/shards.ts";
import { createTurns, type Turns } from "../../core/store/batching/turns.ts";
import type { Pool, Runner } from "../../core/store/pool.ts";
import { StatementFailed } from "../../core/store/statement-errors.ts";
import { createCoordinatorRoute } from "./coordinator-route.ts";
import { createDirectRoute } from "./direct-route.ts";
import { hasShardFunctions, MOVED_STATES } from "./shard-functions.ts";
import { agreesWithCitus, type PlacedShard, readShardMap, type ShardNode, shardOf } from "./shard-map.ts";

export interface ShardsOptions {
  /**
   * Called with the reason if statements are not grouped by shard: they are correct and slow, because each may touch all
   * shards.
   */
  readonly onUngrouped: (reason: string) => void;
  /** Called when a node begins to be one that does not answer. */
  readonly onAway: (node: ShardNode) => void;
  /**
   * Opens a pool of connections to a node; then statements of a shard are sent to its node. Unset: they are sent to
   * the coordinator, which passes each to one node.
   */
  readonly openNode?: ((node: ShardNode) => Pool) | undefined;
}

/** How long no statement is sent to a node that did not answer; also the retry delay for callers. */
const PAUSE_MS = 500;

/**
 * Reads the shards of the table of records. Returns undefined on a plain Postgres, if the table is not distributed,
 * and after a call of `onUngrouped`.
 */
export async function openShards(pool: Pool, options: ShardsOptions): Promise<Shards | undefined> {
  const placed = await readShardMap(pool);
  if (placed === undefined) return undefined;
  const reason = await whyUngrouped(pool, placed);
  if (reason === undefined) return createShards(pool, placed, options);
  options.onUngrouped(reason);
  return undefined;
}

async function whyUngrouped(pool: Pool, placed: readonly PlacedShard[]): Promise<string | undefined> {
  if (!(await hasShardFunctions(pool))) return "functions are missing: run onceward-server migrate --citus";
  if (!(await agreesWithCitus(pool, placed))) return "the shards of sample keys are not those of Citus";
  return undefined;
}

function createShards(
  pool: Pool,
  initial: readonly PlacedShard[],
  { openNode, onAway }: ShardsOptions,
): Shards {
  let placed = initial;
  let nodes = nodesByShard(placed);
  const route = openNode === undefined ? createCoordinatorRoute(pool) : createDirectRoute(pool, openNode);
  const turnsByNode = new Map<number, Turns>();
  /** When the next statement may try a node that did not answer, by the node's id. Infinite: one is trying it. */
  const pausedUntilMs = new Map<number, number>();

  let refreshing: Promise<void> | undefined;

  /** Without the functions, no shard has a node, and Citus plans all statements. */
  async function readAgain(): Promise<void> {
    const found = await readShardMap(pool);
    placed = found ?? placed;
    nodes = nodesByShard(found !== undefined && (await hasShardFunctions(pool)) ? found : []);
    route.keepOnly(nodes.values());
  }

  function refresh(): Promise<void> {
    refreshing ??= readAgain().finally(() => {
      refreshing = undefined;
    });
    return refreshing;
  }

  async function isBack(id: number): Promise<boolean> {
    const node = placed.find((shard) => shard.node.id === id)?.node;
    return node === undefined || (await route.answers(node));
  }

  /** Runs a statement on the shard's table, or on all of the records if the shard is no longer on the node. */
  function runnerOn(node: ShardNode, shard: Shard): Runner["run"] {
    const run = route.runnerOn(node, shard.id);
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

  /**
   * Returns whether a statement is the one that tries a node that did not answer. The others are refused until it has ended,
   * so that callers do not wait for a node that hangs.
   *
   * @throws Refusal DATABASE_UNAVAILABLE if the statement must not be sent.
   */
  function beginTrial(node: ShardNode): boolean {
    const untilMs = pausedUntilMs.get(node.id);
    if (untilMs === undefined) return false;
    if (untilMs > performance.now()) throw nodeAway();
    pausedUntilMs.set(node.id, Number.POSITIVE_INFINITY);
    return true;
  }

  function pause(node: ShardNode): void {
    if (!pausedUntilMs.has(node.id)) onAway(node);
    pausedUntilMs.set(node.id, performance.now() + PAUSE_MS);
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
        turns = createTurns(route.turns);
        turnsByNode.set(node, turns);
      }
      return turns;
    },
    runnerOn: (shard) => async (statement, parameters, operations) => {
      const node = nodes.get(shard.id);
      if (node === undefined) return await pool.run(statement, parameters, operations);
      const isTrial = beginTrial(node);
      try {
        const rows = await runnerOn(node, shard)<never>(statement, parameters, operations);
        pausedUntilMs.delete(node.id);
        return rows;
      } catch (error) {
        const isAway = isTrial ? !(error instanceof StatementFailed) : route.isAway(node, error);
        if (isAway) pause(node);
        else if (isTrial) pausedUntilMs.delete(node.id);
        throw error;
      }
    },
    async refresh() {
      await refresh();
      for (const id of pausedUntilMs.keys()) if (await isBack(id)) pausedUntilMs.delete(id);
    },
    awayNodes: () => pausedUntilMs.size,
    close: () => route.close(),
  };
}

/** Stands for the node of shards that were divided, or that are not used by themselves. */
const NO_NODE = -1;

function nodesByShard(placed: readonly PlacedShard[]): ReadonlyMap<number, ShardNode> {
  return new Map(placed.map(({ id, node }) => [id, node]));
}

function nodeAway(): Refusal {
  return new Refusal("DATABASE_UNAVAILABLE", "The node of the database that holds the key does not answer.", {
    retryAfterMs: PAUSE_MS,
  });
}
