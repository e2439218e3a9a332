import type { DegradedCondition } from "../background/degraded.ts";
import type { Heartbeat } from "../background/heartbeat.ts";
import { isSkewed } from "../domain/clock-offset.ts";
import type { DegradedReason, ReplicaLoad } from "../domain/replica.ts";
import type { ReplicaCache } from "../records/replay/replica-cache.ts";
import type { Facts } from "./connect.ts";

/** One heartbeat fails as soon as another replica holds a lock. */
const FAILED_HEARTBEATS = 2;
/** A sweep that is so late begins `sweep_behind`; the lower bound ends it, so that the state does not flap. */
const SWEEP_LATE_S = 60;
const SWEEP_IN_TIME_S = 30;

/**
 * Returns when each degraded state of a replica begins and ends. `server/metrics.md` defines them.
 *
 * @param sweepLateS returns the seconds by which the sweep is late.
 */
export function degradedConditions(
  { pools, commits, databaseClock, shards, newestMigration }: Facts,
  { redisBypassed }: ReplicaCache,
  { lastBeaten, failures }: Heartbeat,
  sweepLateS: () => number,
): Readonly<Record<DegradedReason, DegradedCondition>> {
  const { load } = pools.pool;
  const clock = () => lastBeaten()?.clock ?? { aheadMs: 0, uncertaintyMs: 0 };
  return {
    // Reads succeed while commits hang or a disk is full: the last statement alone does not tell.
    database_unreachable: {
      holds: () => load().unreachable || commits.hang || failures() >= FAILED_HEARTBEATS,
      looks: 2,
    },
    redis_bypassed: { holds: redisBypassed, looks: 1 },
    // A newer server has migrated the database.
    schema_ahead: { holds: () => (lastBeaten()?.schemaVersion ?? "") > newestMigration, looks: 1 },
    pool_saturated: { holds: () => load().waiting > 0, looks: 5 },
    sweep_behind: {
      holds: (active) => sweepLateS() > (active ? SWEEP_IN_TIME_S : SWEEP_LATE_S),
      looks: 1,
    },
    // One slow heartbeat says little about the clock.
    clock_skewed: { holds: () => [clock(), ...(shards?.clocks() ?? [])].some(isSkewed), looks: 5 },
    database_clock_moved: { holds: databaseClock.hasMoved, looks: 1 },
    // The database itself is another one than these nodes.
    shards_unreachable: { holds: () => (shards?.unreachableNodes() ?? 0) > 0, looks: 2 },
  };
}

/** Returns a function that returns the load of the replica, with the rate of operations since its last call. */
export function createLoadMeter(
  { config, metrics, pools }: Facts,
  {
    callsInFlight,
    connections,
  }: { readonly callsInFlight: () => number; readonly connections: () => number },
): () => ReplicaLoad {
  let lastAtMs = performance.now();
  let lastOperations = metrics.operations();
  return () => {
    const nowMs = performance.now();
    const operations = metrics.operations();
    const operationsPerSecond = ((operations - lastOperations) * 1000) / Math.max(nowMs - lastAtMs, 1);
    lastAtMs = nowMs;
    lastOperations = operations;
    const { total, idle, waiting } = pools.pool.load();
    return {
      callsInFlight: callsInFlight(),
      operationsPerSecond,
      connections: connections(),
      poolSize: config.ONCEWARD_POOL_SIZE,
      poolBusy: total - idle,
      poolAwaited: waiting,
    };
  };
}
