import { findPreviousVersion, layOutVersion } from "../../../support/processes/previous-version.ts";
import { CITUS_FAULTS } from "./citus.ts";
import { CROWD_FAULTS } from "./crowds.ts";
import { anyReplica, type Fault, last, postgresFault } from "./fault.ts";
import { LIMIT_FAULTS } from "./limits.ts";
import { POSTGRES_CLOCK_FAULTS } from "./postgres-clock.ts";
import { POSTGRES_NETWORK_FAULTS } from "./postgres-network.ts";
import { END_BACKENDS, POSTGRES_PROCESS_FAULTS } from "./postgres-process.ts";
import { POSTGRES_REFUSAL_FAULTS } from "./postgres-refusals.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { REPLICA_FAULTS } from "./replicas.ts";
import { TENANT_FAULTS } from "./tenant-moves.ts";

/** Unreleased versions may differ in what giving back restores, so that the old one is that before its last change. */
const GIVE_BACK = ["--", "server/src/records/release.ts", "server/src/records/engine/record-sql.ts"];

/** Old and new versions side by side, as during a rollout. */
const VERSION_FAULTS: readonly Fault[] = [
  {
    name: "replica-old-version",
    target: "replica",
    async inject(scene) {
      const commit = await findPreviousVersion(GIVE_BACK);
      if (commit === undefined) return;
      const replica = anyReplica(scene);
      const { main, remove } = await layOutVersion(commit);
      try {
        await replica.restart({ main });
        await last(scene, 5000, 10_000);
      } finally {
        await replica.restart();
        await remove();
      }
    },
    whyNot: async () =>
      (await findPreviousVersion(GIVE_BACK)) === undefined
        ? "the clone is too shallow to hold the old version"
        : undefined,
  },
];

/** Faults of settings that others give the service's database or its role. */
const POSTGRES_SETTING_FAULTS: readonly Fault[] = [
  // Changes no token, no time and no number: to 15 digits, the tokens of a millisecond are equal.
  postgresFault("postgres-float-digits", async (postgres, scene) => {
    const [{ name } = { name: "" }] = await postgres.query<{ name: string }>(
      "select quote_ident(current_database()) as name",
    );
    const whose = scene.random.below(2) === 0 ? `database ${name}` : "role current_user";
    await postgres.query(`alter ${whose} set extra_float_digits = 0`);
    // Only new connections have it.
    await postgres.query(END_BACKENDS);
    await last(scene, 2000, 5000);
    await postgres.query(`alter ${whose} reset extra_float_digits`);
    await postgres.query(END_BACKENDS);
  }),
];

/** Faults of the sweep. */
const SWEEP_FAULTS: readonly Fault[] = [
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

/** Faults of clients. */
const CLIENT_FAULTS: readonly Fault[] = [
  {
    // For two leases: holders continue afterwards without knowing.
    name: "holder-freeze",
    target: "client",
    async inject(scene) {
      const client = scene.clients[scene.random.below(scene.clients.length)];
      if (client === undefined) return;
      scene.onVictim({ client: client.name });
      process.kill(client.pid, "SIGSTOP");
      await last(scene, 2000, 4000);
      process.kill(client.pid, "SIGCONT");
    },
  },
];

/** All faults of a run on one Postgres. */
export const FAULTS: readonly Fault[] = [
  ...REPLICA_FAULTS,
  ...CLIENT_FAULTS,
  ...REDIS_FAULTS,
  ...POSTGRES_PROCESS_FAULTS,
  ...POSTGRES_NETWORK_FAULTS,
  ...POSTGRES_REFUSAL_FAULTS,
  ...POSTGRES_SETTING_FAULTS,
  ...POSTGRES_CLOCK_FAULTS,
  ...SWEEP_FAULTS,
  ...LIMIT_FAULTS,
  ...CROWD_FAULTS,
  ...TENANT_FAULTS,
  ...VERSION_FAULTS,
];

/**
 * Faults that need one Postgres: the rows of Citus lie on several nodes, older versions have no statements for them,
 * the nodes' data is on the machine's own disk, and each node has a clock of its own. A second installation there has no Citus.
 */
const OF_ONE_POSTGRES: ReadonlySet<string> = new Set([
  "postgres-row-locks",
  "postgres-disk-full",
  ...POSTGRES_CLOCK_FAULTS.map(({ name }) => name),
  "replica-old-version",
  "tenant-move",
]);

/** All faults of a run on Citus; those of Postgres hit its coordinator. */
export const FAULTS_ON_CITUS: readonly Fault[] = [
  ...FAULTS.filter(({ name }) => !OF_ONE_POSTGRES.has(name)),
  ...CITUS_FAULTS,
];
