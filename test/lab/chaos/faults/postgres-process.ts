import { type Fault, last } from "./fault.ts";

/** Ends all connections of replicas. */
export const END_BACKENDS =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'onceward'";

/** Faults of Postgres' processes. */
export const POSTGRES_PROCESS_FAULTS: readonly Fault[] = [
  {
    name: "postgres-kill",
    target: "postgres",
    async inject({ rig: { postgres } }) {
      await postgres.kill();
      await postgres.restart();
    },
  },
  {
    name: "postgres-freeze",
    target: "postgres",
    async inject(scene) {
      const { postgres } = scene.rig;
      postgres.signal("SIGSTOP");
      await last(scene, 1500, 4000);
      postgres.signal("SIGCONT");
    },
  },
  {
    name: "postgres-terminate-backends",
    target: "postgres",
    async inject(scene) {
      for (let round = 0; round < 3; round++) {
        await scene.rig.postgres.query(END_BACKENDS);
        await last(scene, 200, 600);
      }
    },
  },
  {
    // The standby has everything that was acknowledged.
    name: "postgres-failover",
    target: "postgres",
    async inject(scene) {
      const { postgres } = scene.rig;
      await postgres.addStandby();
      await last(scene, 1000, 2000);
      await postgres.failOver();
    },
  },
];
