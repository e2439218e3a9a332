import { type Fault, last, postgresFault } from "./fault.ts";

/** Ends all connections of replicas. */
export const END_BACKENDS =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'onceward'";

/** Faults of Postgres' processes. */
export const POSTGRES_PROCESS_FAULTS: readonly Fault[] = [
  postgresFault("postgres-kill", async (postgres) => {
    await postgres.kill();
    await postgres.restart();
  }),
  postgresFault("postgres-freeze", async (postgres, scene) => {
    postgres.signal("SIGSTOP");
    await last(scene, 1500, 4000);
    postgres.signal("SIGCONT");
  }),
  postgresFault("postgres-terminate-backends", async (postgres, scene) => {
    for (let round = 0; round < 3; round++) {
      await postgres.query(END_BACKENDS);
      await last(scene, 200, 600);
    }
  }),
  // The standby has everything that was acknowledged.
  postgresFault("postgres-failover", async (postgres, scene) => {
    await postgres.addStandby();
    await last(scene, 1000, 2000);
    await postgres.failOver();
  }),
];
