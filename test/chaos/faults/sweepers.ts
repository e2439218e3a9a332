import { anyReplica, type Fault, last } from "./fault.ts";

/** What happens to the sweep. */
export const SWEEP_FAULTS: readonly Fault[] = [
  {
    // When it looks at a row decides nothing: all replicas sweep at once, whatever is due, and one dies of it.
    name: "sweeper-kill",
    target: "replica",
    async inject(scene) {
      const { postgres } = scene.rig;
      const replica = anyReplica(scene);
      for (let round = 0; round < 3; round++) {
        // In turn with whatever else happens to Postgres, which may be away.
        await postgres.query("update records set sweep_at = now() where sweep_at > now()").catch(() => {});
        await last(scene, 200, 700);
      }
      await replica.kill();
      await replica.restart();
    },
  },
];
