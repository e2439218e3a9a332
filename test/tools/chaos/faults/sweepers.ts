import { anyReplica, type Fault, last } from "./fault.ts";

/** Faults of the sweep. */
export const SWEEP_FAULTS: readonly Fault[] = [
  {
    // All rows become due at once, which must change no answer; all replicas sweep, and one is killed.
    name: "sweeper-kill",
    target: "replica",
    async inject(scene) {
      const { postgres } = scene.rig;
      const replica = anyReplica(scene);
      for (let round = 0; round < 3; round++) {
        // Postgres may be down because of another fault.
        await postgres.query("update records set sweep_at = now() where sweep_at > now()").catch(() => {});
        await last(scene, 200, 700);
      }
      await replica.kill();
      await replica.restart();
    },
  },
];
