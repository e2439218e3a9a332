import { setTimeout as pause } from "node:timers/promises";
import { setClockAhead } from "../../../helpers/database/clock.ts";
import { type Fault, last, type Scene } from "./fault.ts";

const MINUTE_MS = 60_000;
const HOUR_MINUTES = 60;
/** Longer than an interval of heartbeats (3 s), in which replicas see the clock; and shorter, in which they may not. */
const SHORTEST_MS = 1000;
const LONGEST_MS = 8000;
const RETRY_MS = 500;
const TRIES = 20;

/**
 * Faults in which the database's clock is set forward and back. Ten minutes are longer than the load's shortest
 * retention, 80 hours longer than each. They take turns with those of replicas, because a replica of the version before
 * may follow the clock.
 */
export const POSTGRES_CLOCK_FAULTS: readonly Fault[] = [
  { name: "postgres-clock-10min", target: "replica", inject: (scene) => setForward(scene, 10) },
  { name: "postgres-clock-80h", target: "replica", inject: (scene) => setForward(scene, 80 * HOUR_MINUTES) },
];

async function setForward(scene: Scene, minutes: number): Promise<void> {
  // Before the clock is set: the judge must know of it although the statement's answer is lost.
  scene.onVictim({ clockAheadMs: minutes * MINUTE_MS });
  try {
    await setClock(scene, minutes);
    await last(scene, SHORTEST_MS, LONGEST_MS);
  } finally {
    await setClock(scene, 0);
  }
}

/** Sets the clock ahead; retries, because Postgres may still be recovering from another fault. */
async function setClock({ rig: { postgres } }: Scene, minutes: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await setClockAhead(postgres, minutes);
      return;
    } catch (error) {
      if (attempt === TRIES) throw error;
      await pause(RETRY_MS);
    }
  }
}
