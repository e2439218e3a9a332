import type { Logger } from "pino";
import { largerBatch, smallerBatch } from "../background/batch-size.ts";
import { createRepeating } from "../background/repeat.ts";
import type { Pool } from "../database/pool.ts";
import type { DatabaseClock } from "../domain/database-clock.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type SweptNamespace, sweepBatch } from "./sweep.ts";

/** Maximum rows per statement: few, so that locks are short. A statement that takes too long halves it for a while. */
const BATCH_ROWS = 1000;
/** Maximum delay between two sweeps that fail. Rows that become due in this time are swept in seconds. */
const MAX_BACKOFF_MS = 30_000;

/**
 * Deletes records whose retention has ended, in the background. Every replica does so without a leader: a
 * batch checks its conditions again on every row that it locks, so two batches at once only waste work.
 */
export function createSweeper(options: {
  readonly pool: Pool;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Delay between two sweeps, ±20 %, so that replicas do not sweep in step. */
  readonly intervalMs: number;
  /** Called with what each statement deleted, for the tenants' totals. */
  readonly onSwept: (byNamespace: readonly SweptNamespace[]) => void;
  /** As `sweepRecords`: selects the keys that are named to `onSwept`. */
  readonly sampleSeed?: bigint | undefined;
}) {
  const { pool, databaseClock, metrics, log, intervalMs, onSwept, sampleSeed } = options;
  let rows = BATCH_ROWS;
  let lagS = 0;
  let lookedAtMs = performance.now();

  /** Without it, the lag of sweeps that fail would not be known. */
  function found(foundLagS: number): void {
    lookedAtMs = performance.now();
    setLag(foundLagS);
  }

  function setLag(seconds: number): void {
    lagS = seconds;
    metrics.sweepLag.set(seconds);
  }

  async function sweep(): Promise<boolean> {
    const swept = await sweepBatch(
      pool,
      rows,
      { found, swept: onSwept },
      sampleSeed,
      databaseClock.latestMs(),
    );
    metrics.sweepRecords.inc({ action: "deleted" }, swept.deleted);
    metrics.sweepRecords.inc({ action: "kept" }, swept.kept);
    const more = swept.due === rows;
    setLag(more ? swept.lagS : 0);
    rows = largerBatch(rows, BATCH_ROWS);
    return more;
  }

  const repeating = createRepeating({
    intervalMs,
    firstDelayMs: intervalMs * Math.random(),
    maxBackoffMs: MAX_BACKOFF_MS,
    work: sweep,
    onFailed(error) {
      rows = smallerBatch(rows);
      metrics.sweepErrors.inc();
      log.warn({ err: error }, "sweep failed; retrying at the next interval");
    },
  });
  return {
    ...repeating,
    /**
     * Returns by how many seconds the sweep is late: how long the most overdue record had been due when a sweep
     * last looked, or how long no sweep has looked, less three intervals.
     */
    lateS: () => Math.max(lagS, (performance.now() - lookedAtMs - 3 * intervalMs) / 1000),
  };
}
