import type { DegradedCondition } from "./core/background/degraded.ts";
import type { DegradedReason, ReplicaLoad } from "./core/domain/replica.ts";
import type { PoolLoad } from "./core/store/pool.ts";

/** A sweep that is so late begins `sweep_behind`; the lower bound ends it, so that the state does not flap. */
const SWEEP_LATE_S = 60;
const SWEEP_IN_TIME_S = 30;

/** Returns when each degraded state of a replica begins and ends. `server/metrics.md` defines them. */
export function degradedConditions(sources: {
  readonly redisBypassed: () => boolean;
  /** Whether a newer server has migrated the database. */
  readonly schemaAhead: () => boolean;
  readonly pool: () => PoolLoad;
  /** Seconds by which the sweep is late. */
  readonly sweepLateS: () => number;
  /** Whether this machine's clock differs too much from the database's. */
  readonly clockSkewed: () => boolean;
  /** As DatabaseClock.hasMoved. */
  readonly databaseClockMoved: () => boolean;
  /** Nodes of the database that did not answer their last statement; the database itself is another one. */
  readonly unreachableNodes: () => number;
}): Readonly<Record<DegradedReason, DegradedCondition>> {
  return {
    database_away: { holds: () => sources.pool().unreachable, looks: 2 },
    redis_bypassed: { holds: sources.redisBypassed, looks: 1 },
    schema_ahead: { holds: sources.schemaAhead, looks: 1 },
    pool_saturated: { holds: () => sources.pool().waiting > 0, looks: 5 },
    sweep_behind: {
      holds: (active) => sources.sweepLateS() > (active ? SWEEP_IN_TIME_S : SWEEP_LATE_S),
      looks: 1,
    },
    // One slow heartbeat says little about the clock.
    clock_skewed: { holds: sources.clockSkewed, looks: 5 },
    database_clock_moved: { holds: sources.databaseClockMoved, looks: 1 },
    shards_away: { holds: () => sources.unreachableNodes() > 0, looks: 2 },
  };
}

/** Returns a function that returns the load of the replica, with the rate of operations since its last call. */
export function createLoadMeter(sources: {
  readonly callsInFlight: () => number;
  readonly connections: () => number;
  /** Operations that were answered since the start. */
  readonly operations: () => number;
  readonly pool: () => PoolLoad;
  readonly poolSize: number;
}): () => ReplicaLoad {
  let lastAtMs = performance.now();
  let lastOperations = sources.operations();
  return () => {
    const nowMs = performance.now();
    const operations = sources.operations();
    const operationsPerSecond = ((operations - lastOperations) * 1000) / Math.max(nowMs - lastAtMs, 1);
    lastAtMs = nowMs;
    lastOperations = operations;
    const { total, idle, waiting } = sources.pool();
    return {
      callsInFlight: sources.callsInFlight(),
      operationsPerSecond,
      connections: sources.connections(),
      poolSize: sources.poolSize,
      poolBusy: total - idle,
      poolAwaited: waiting,
    };
  };
}
