import { CITUS_FAULTS } from "./citus.ts";
import { CLIENT_FAULTS } from "./clients.ts";
import { CROWD_FAULTS } from "./crowds.ts";
import type { Fault } from "./fault.ts";
import { LIMIT_FAULTS } from "./limits.ts";
import { POSTGRES_CLOCK_FAULTS } from "./postgres-clock.ts";
import { POSTGRES_NETWORK_FAULTS } from "./postgres-network.ts";
import { POSTGRES_PROCESS_FAULTS } from "./postgres-process.ts";
import { POSTGRES_REFUSAL_FAULTS } from "./postgres-refusals.ts";
import { POSTGRES_SETTING_FAULTS } from "./postgres-settings.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { REPLICA_FAULTS } from "./replicas.ts";
import { SWEEP_FAULTS } from "./sweepers.ts";
import { TENANT_FAULTS } from "./tenant-moves.ts";
import { VERSION_FAULTS } from "./versions.ts";

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
