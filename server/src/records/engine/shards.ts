import type { Runner } from "../../database/pool.ts";
import type { ClockOffset } from "../../domain/clock-offset.ts";
import type { Turns } from "./turns.ts";

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
  /** Reads again where the shards are, tries the nodes, and reads their clocks. */
  refresh(): Promise<void>;
  /** Returns the number of nodes that did not answer their last statement. */
  unreachableNodes(): number;
  /** Returns how far this process' clock is ahead of those of the nodes, as last read. */
  clocks(): readonly ClockOffset[];
  /** Closes the connections to the nodes, as Pool.close. */
  close(limitMs?: number): Promise<void>;
}
