import type { Pool } from "../store/pool.ts";
import { beatReplicaRow, removeReplicaRow } from "../store/replicas.ts";
import { createRepeating } from "./repeat.ts";

/** Registers this replica as live in the database, and counts the live replicas. */
export interface Heartbeat {
  /** Resolves when the replica is registered and the live replicas are counted. */
  start(): Promise<void>;
  /** Unregisters the replica, so that the other replicas' shares of quotas grow at once. */
  stop(): Promise<void>;
  /** Returns the number of live replicas, including this one, as of a few seconds ago. */
  liveReplicas(): number;
}

export interface HeartbeatOptions {
  readonly pool: Pool;
  readonly replica: { readonly id: string; readonly version: string };
  /** Called at each heartbeat, to check whether the database was restored. */
  readonly look: (pool: Pool) => Promise<unknown>;
  readonly onFailed: (error: unknown) => void;
}

/** Other replicas count this one as live until it has missed three heartbeats. */
const INTERVAL_MS = 3000;

/** @see Heartbeat */
export function createHeartbeat({ pool, replica, look, onFailed }: HeartbeatOptions): Heartbeat {
  let live = 1;
  const beat = async () => {
    await look(pool);
    live = await beatReplicaRow(pool, replica);
  };
  const beats = createRepeating({ intervalMs: INTERVAL_MS, work: beat, onFailed });
  return {
    async start() {
      await beat();
      beats.start();
    },
    async stop() {
      await beats.stop();
      await removeReplicaRow(pool, replica.id).catch(onFailed);
    },
    liveReplicas: () => live,
  };
}
