import type { Logger } from "pino";
import type { Pool } from "../store/pool.ts";
import { type SweptNamespace, sweepBatch } from "../store/records/sweep-records.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { largerBatch, smallerBatch } from "./batch-size.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

export interface SweeperOptions {
  readonly pool: Pool;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Delay between two sweeps, ±20 %, so that replicas do not sweep in step. */
  readonly intervalMs: number;
  /** Maximum rows per statement: few, so that locks are short. */
  readonly batchRows: number;
  /** Called with what each statement deleted, for the tenants' totals. */
  readonly onSwept: (byNamespace: readonly SweptNamespace[]) => void;
}

/** Maximum delay between two sweeps that fail. Rows that become due in this time are swept in seconds. */
const MAX_BACKOFF_MS = 30_000;

/**
 * Deletes records whose retention has ended, in the background. Every replica does so without a leader: a
 * batch checks its conditions again on every row that it locks, so two batches at once only waste work.
 */
export function createSweeper({
  pool,
  metrics,
  log,
  intervalMs,
  batchRows,
  onSwept,
}: SweeperOptions): Repeating {
  let rows = batchRows;

  async function sweep(): Promise<boolean> {
    const swept = await sweepBatch(pool, rows, onSwept);
    metrics.sweepRecords.inc({ action: "deleted" }, swept.deleted);
    metrics.sweepRecords.inc({ action: "kept" }, swept.kept);
    const more = swept.due === rows;
    metrics.sweepLag.set(more ? swept.lagS : 0);
    rows = largerBatch(rows, batchRows);
    return more;
  }

  return createRepeating({
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
}
