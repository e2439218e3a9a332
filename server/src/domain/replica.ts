/** Why a replica is degraded: it works, but without a part or with a delay. `metrics.md` defines each reason. */
export const DEGRADED_REASONS = [
  "database_unreachable",
  "redis_bypassed",
  "schema_ahead",
  "pool_saturated",
  "sweep_behind",
  "clock_skewed",
  "database_clock_moved",
  "shards_unreachable",
] as const;
export type DegradedReason = (typeof DEGRADED_REASONS)[number];

/** The load of a replica. */
export interface ReplicaLoad {
  readonly callsInFlight: number;
  /** Operations on records that were answered, since the last heartbeat. */
  readonly operationsPerSecond: number;
  /** Connections of callers. */
  readonly connections: number;
  /** Maximum connections to Postgres for calls. */
  readonly poolSize: number;
  readonly poolBusy: number;
  /** Statements that wait for a connection. */
  readonly poolAwaited: number;
}

/** A replica as its last heartbeat described it. */
export interface LiveReplica {
  readonly id: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly seenAtMs: number;
  readonly degraded: readonly string[];
  /** Undefined: its first heartbeat is not stored yet. */
  readonly load: ReplicaLoad | undefined;
  /** The name of its machine or container; undefined: its first heartbeat is not stored yet. */
  readonly host: string | undefined;
  /** As ClockOffset, of the heartbeat before; undefined: not measured yet. */
  readonly clockAheadMs: number | undefined;
}
