import type { TurnsOptions } from "../../core/store/batching/turns.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { ShardNode } from "./shard-map.ts";

/**
 * Maximum statements in flight on a node: while one commits, others run and one is on its way. A node that hangs
 * holds this many of the pool's connections, and leaves the others to other nodes.
 */
export const MAX_IN_FLIGHT_BY_NODE = 4;

/** How statements reach the table of a shard. */
export interface ShardRoute {
  /** How the statements of a node take turns. */
  readonly turns: TurnsOptions;
  /** Returns a function that runs statements on the table of a shard, on the node that holds it. */
  runnerOn(node: ShardNode, shard: number): Runner["run"];
  /** Returns whether the last statement on a node ended with this error because the node did not answer. */
  isAway(node: ShardNode, error: unknown): boolean;
  /** Returns whether a node answers a statement now. */
  answers(node: ShardNode): Promise<boolean>;
  /** Closes the connections to all other nodes than these. */
  keepOnly(nodes: Iterable<ShardNode>): void;
  /** As Pool.close. */
  close(limitMs?: number): Promise<void>;
}
