import type { Logger } from "pino";
import type { Pool } from "../store/pool.ts";
import { type SweptNamespace, sweepBatch } from "../store/records/sweep-records.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createBatchSize } from "./batch-size.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

export interface SweeperOptions {
  readonly pool: Pool;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Between two sweeps, ±20 %, so that replicas don't march in step. */
  readonly intervalMs: number;
  /** Rows per statement at most: few, so that no lock is held for long. */
  readonly batchRows: number;
  /** Told what each statement took, for the tenants' totals. */
  readonly onSwept: (byNamespace: readonly SweptNamespace[]) => void;
}

/** Between two sweeps that fail, at most: what comes due meanwhile is swept in seconds. */
const MAX_BACKOFF_MS = 30_000;

/**
 * Reclaims the space of what retention has ended, in the background. Every replica does, and none is the leader: a batch
 * repeats its conditions on every row it takes, so that two at once are merely wasteful.
 */
export function createSweeper({
  pool,
  metrics,
  log,
  intervalMs,
  batchRows,
  onSwept,
}: SweeperOptions): Repeating {
  const size = createBatchSize(batchRows);
  return createRepeating({
    intervalMs,
    firstDelayMs: intervalMs * Math.random(),
    maxBackoffMs: MAX_BACKOFF_MS,
    work: () =>
      size.use(async (rows) => {
        const swept = await sweepBatch(pool, rows, onSwept);
        metrics.sweepRecords.inc({ action: "deleted" }, swept.deleted);
        metrics.sweepRecords.inc({ action: "kept" }, swept.kept);
        const more = swept.due === rows;
        metrics.sweepLag.set(more ? swept.lagS : 0);
        return more;
      }),
    onFailed(error) {
      metrics.sweepErrors.inc();
      log.warn({ err: error }, "a sweep failed; the next one goes on");
    },
  });
}
