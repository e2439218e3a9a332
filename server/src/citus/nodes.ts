import type { Pool, Runner } from "../database/pool.ts";
import { StatementFailed } from "../database/statement-errors.ts";
import { type ClockOffset, clockOffset } from "../domain/clock-offset.ts";
import { Refusal } from "../domain/refusal.ts";
import type { ShardNode } from "./shard-map.ts";

/** The nodes that hold shards: connections to each, and whether it answers. */
export type Nodes = ReturnType<typeof createNodes>;

export interface NodesOptions {
  /** Opens a pool of connections to a node. */
  readonly openNode: (node: ShardNode) => Pool;
  /** Called when a node begins to be one that does not answer. */
  readonly onUnreachable: (node: ShardNode) => void;
}

/** A node to which there are connections. */
interface Connected {
  readonly node: ShardNode;
  readonly pool: Pool;
  /** When the next statement may try the node, which did not answer. Infinite: one is trying it. Undefined: it answers. */
  pausedUntilMs: number | undefined;
  /** As of the last reading; undefined if that failed. */
  clock: ClockOffset | undefined;
}

/** How long no statement is sent to a node that did not answer; also the retry delay for callers. */
const PAUSE_MS = 500;

const checkNode = { name: "check_node", text: "select" };

/** Leases of a node's keys end by its clock. */
const readClock = {
  name: "read_node_clock",
  text: 'select (extract(epoch from clock_timestamp()) * 1000)::text as "nowMs"',
};

/** Creates the nodes. Connects to each when it is first used. */
export function createNodes({ openNode, onUnreachable }: NodesOptions) {
  const all = new Map<string, Connected>();

  function connect(node: ShardNode): Connected {
    const address = addressOf(node);
    let connected = all.get(address);
    if (connected === undefined) {
      connected = { node, pool: openNode(node), pausedUntilMs: undefined, clock: undefined };
      all.set(address, connected);
    }
    return connected;
  }

  function pause(connected: Connected): void {
    if (connected.pausedUntilMs === undefined) onUnreachable(connected.node);
    connected.pausedUntilMs = performance.now() + PAUSE_MS;
  }

  return {
    /**
     * Calls `work`, which runs a statement on a node. Of the callers of a node that did not answer, one tries it, and the
     * others are refused until that has ended, so that they do not wait for a node that hangs.
     *
     * @throws Refusal DATABASE_UNAVAILABLE before `work` is called if the node did not answer a moment ago; and what
     *   `work` throws.
     */
    async use<Answer>(node: ShardNode, work: (runner: Runner) => Promise<Answer>): Promise<Answer> {
      const connected = connect(node);
      const isTrial = beginTrial(connected);
      try {
        const answer = await work(connected.pool);
        connected.pausedUntilMs = undefined;
        return answer;
      } catch (error) {
        const isUnreachable = isTrial
          ? !(error instanceof StatementFailed)
          : connected.pool.load().unreachable;
        if (isUnreachable) pause(connected);
        else if (isTrial) connected.pausedUntilMs = undefined;
        throw error;
      }
    },
    /** Tries a node, also one that did not answer a moment ago. @throws as Runner.run. */
    async check(node: ShardNode): Promise<void> {
      const connected = connect(node);
      try {
        await connected.pool.run(checkNode, []);
        connected.pausedUntilMs = undefined;
      } catch (error) {
        if (connected.pausedUntilMs === undefined) pause(connected);
        throw error;
      }
    },
    /** Returns the nodes that did not answer their last statement. */
    unreachable: () =>
      Array.from(all.values())
        .filter(({ pausedUntilMs }) => pausedUntilMs !== undefined)
        .map(({ node }) => node),
    /** Reads the clocks of all nodes. Never rejects: a node that does not answer has no known clock. */
    async readClocks(): Promise<void> {
      await Promise.all(
        Array.from(all.values(), async (connected) => {
          connected.clock = await offsetOf(connected.pool).catch(() => undefined);
        }),
      );
    },
    /** Returns how far this process' clock is ahead of those that are known. */
    clocks: () => Array.from(all.values()).flatMap(({ clock }) => clock ?? []),
    /** Closes the connections to all other nodes than these. */
    keepOnly(nodes: Iterable<ShardNode>): void {
      const kept = new Set(Array.from(nodes, addressOf));
      for (const [address, { pool }] of all) {
        if (kept.has(address)) continue;
        all.delete(address);
        void pool.close();
      }
    },
    /** Closes the connections to the nodes, as Pool.close. */
    async close(limitMs?: number): Promise<void> {
      await Promise.all(Array.from(all.values(), ({ pool }) => pool.close(limitMs)));
    },
  };
}

async function offsetOf(pool: Pool): Promise<ClockOffset> {
  const startedAtMs = Date.now();
  const [row] = await pool.run<{ nowMs: string }>(readClock, []);
  return clockOffset({ startedAtMs, endedAtMs: Date.now(), databaseMs: Number(row?.nowMs) });
}

/** Returns `host:port`. */
export function addressOf({ host, port }: ShardNode): string {
  return `${host}:${port}`;
}

/**
 * Returns whether the next statement is the one that tries a node that did not answer.
 *
 * @throws Refusal DATABASE_UNAVAILABLE if no statement must be sent.
 */
function beginTrial(connected: Connected): boolean {
  if (connected.pausedUntilMs === undefined) return false;
  if (connected.pausedUntilMs > performance.now()) {
    throw new Refusal(
      "DATABASE_UNAVAILABLE",
      "The node of the database that holds the key does not answer.",
      {
        retryAfterMs: PAUSE_MS,
      },
    );
  }
  connected.pausedUntilMs = Number.POSITIVE_INFINITY;
  return true;
}
