import { setClockAhead } from "../../../support/database/clock.ts";
import { type Fault, last, persist, type Scene } from "./fault.ts";

const MINUTE_MS = 60_000;
const HOUR_MINUTES = 60;
/** Longer than an interval of heartbeats (3 s), in which replicas see the clock; and shorter, in which they may not. */
const SHORTEST_MS = 1000;
const LONGEST_MS = 8000;
/** A replica that starts alone accepts 15 minutes before its machine's clock, and one machine's is ten minutes fast. */
const AT_START_MINUTES = 26;

/**
 * Faults in which the database's clock is set forward and back. Ten minutes are longer than the load's shortest
 * retention, 80 hours longer than each. They take turns with those of replicas, because a replica of the version before
 * may follow the clock.
 */
export const POSTGRES_CLOCK_FAULTS: readonly Fault[] = [
  { name: "postgres-clock-10min", target: "replica", inject: (scene) => setForward(scene, 10) },
  { name: "postgres-clock-80h", target: "replica", inject: (scene) => setForward(scene, 80 * HOUR_MINUTES) },
  {
    // No replica remembers the right clock: each compares it with that of its own machine.
    name: "postgres-clock-80h-at-start",
    target: "replica",
    async inject(scene) {
      const { replicas } = scene.rig;
      await Promise.all(replicas.map((replica) => replica.kill()));
      await setForward(scene, 80 * HOUR_MINUTES, {
        retentionAheadMs: AT_START_MINUTES * MINUTE_MS,
        meanwhile: () => Promise.all(replicas.map((replica) => replica.restart())),
      });
    },
  },
];

interface Start {
  readonly retentionAheadMs: number;
  /** Starts the replicas. */
  readonly meanwhile: () => Promise<unknown>;
}

async function setForward(scene: Scene, minutes: number, start?: Start): Promise<void> {
  const { postgres } = scene.rig;
  const retention = start && { retentionAheadMs: start.retentionAheadMs };
  // Before the clock is set: the judge must know of it although the statement's answer is lost.
  scene.onVictim({ clockAheadMs: minutes * MINUTE_MS, ...retention });
  try {
    await persist(scene, () => setClockAhead(postgres, minutes));
    await start?.meanwhile();
    await last(scene, SHORTEST_MS, LONGEST_MS);
  } finally {
    await persist(scene, () => setClockAhead(postgres, 0));
  }
}
