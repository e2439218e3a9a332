import type { Pool } from "../store/pool.ts";
import { beatReplicaRow, removeReplicaRow } from "../store/replicas.ts";
import { createRepeating } from "./repeat.ts";

/** Says in the database that this replica lives, and knows how many others do. */
export interface Heartbeat {
  /** Resolves once the replica is known, and knows of the others. */
  start(): Promise<void>;
  /** Takes leave, so that the others' shares of what is shared grow at once. */
  stop(): Promise<void>;
  /** How many replicas live, this one included, as of a few seconds ago. */
  liveReplicas(): number;
}

export interface HeartbeatOptions {
  readonly pool: Pool;
  readonly replica: { readonly id: string; readonly version: string };
  /** Looks, at each beat, whether the database is still the one that it was. */
  readonly look: (pool: Pool) => Promise<unknown>;
  readonly onFailed: (error: unknown) => void;
}

/** Three may be missed before the others believe that this one has gone. */
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
