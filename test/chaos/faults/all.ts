import { CLIENT_FAULTS } from "./clients.ts";
import { CROWD_FAULTS } from "./crowds.ts";
import type { Fault } from "./fault.ts";
import { LIMIT_FAULTS } from "./limits.ts";
import { POSTGRES_NETWORK_FAULTS } from "./postgres-network.ts";
import { POSTGRES_PROCESS_FAULTS } from "./postgres-process.ts";
import { POSTGRES_REFUSAL_FAULTS } from "./postgres-refusals.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { REPLICA_FAULTS } from "./replicas.ts";
import { SWEEP_FAULTS } from "./sweepers.ts";
import { VERSION_FAULTS } from "./versions.ts";

/** All faults. */
export const FAULTS: readonly Fault[] = [
  ...REPLICA_FAULTS,
  ...CLIENT_FAULTS,
  ...REDIS_FAULTS,
  ...POSTGRES_PROCESS_FAULTS,
  ...POSTGRES_NETWORK_FAULTS,
  ...POSTGRES_REFUSAL_FAULTS,
  ...SWEEP_FAULTS,
  ...LIMIT_FAULTS,
  ...CROWD_FAULTS,
  ...VERSION_FAULTS,
];
