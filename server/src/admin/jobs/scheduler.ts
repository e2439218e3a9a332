import { largerBatch, smallerBatch } from "../../background/batch-size.ts";
import type { JobSelection } from "./work-batch.ts";

/** Maximum rows per transaction: few, so that locks are short and claims run in between. */
const MAX_BATCH_ROWS = 500;
/** Pause after the first failure in a row. It doubles with each further one. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/**
 * Maximum jobs whose failures are remembered. With more, the oldest is forgotten, and retried before its
 * pause ends.
 */
const MAX_FAILING = 1000;

interface FailingJob {
  readonly pauseMs: number;
  readonly pausedUntilMs: number;
  /**
   * Smaller after each failure, larger after each success: a batch that takes too long for a statement is
   * done in parts.
   */
  readonly maxRows: number;
}

/** Decides which job a replica works on next: tenants take turns, and a job that failed is skipped for a while. */
export function createJobScheduler() {
  const failing = new Map<bigint, FailingJob>();
  let lastTenantId = 0;
  let taken: bigint | undefined;

  return {
    next(nowMs: number): JobSelection {
      taken = undefined;
      return {
        afterTenantId: lastTenantId,
        skippedJobIds: [...failing].flatMap(([id, { pausedUntilMs }]) => (pausedUntilMs > nowMs ? [id] : [])),
        maxRowsOf: (jobId) => failing.get(jobId)?.maxRows ?? MAX_BATCH_ROWS,
        onTaken({ id, tenantId }) {
          taken = id;
          lastTenantId = tenantId;
        },
      };
    },

    /** Notes that a batch of the job that was taken last succeeded. */
    succeeded(): void {
      const before = taken === undefined ? undefined : failing.get(taken);
      if (taken === undefined || before === undefined) return;
      const maxRows = largerBatch(before.maxRows, MAX_BATCH_ROWS);
      if (maxRows === MAX_BATCH_ROWS) failing.delete(taken);
      else failing.set(taken, { pauseMs: 0, pausedUntilMs: 0, maxRows });
    },

    /** Notes that it failed. Returns false if no job was taken, so that no job failed. */
    failed(nowMs: number): boolean {
      if (taken === undefined) return false;
      const before = failing.get(taken) ?? { pauseMs: 0, maxRows: MAX_BATCH_ROWS };
      const pauseMs = Math.min(MAX_PAUSE_MS, Math.max(FIRST_PAUSE_MS, before.pauseMs * 2));
      // Deleted first, so that the job becomes the newest of the map.
      failing.delete(taken);
      failing.set(taken, {
        pauseMs,
        pausedUntilMs: nowMs + pauseMs,
        maxRows: smallerBatch(before.maxRows),
      });
      if (failing.size > MAX_FAILING) {
        const [oldest] = failing.keys();
        if (oldest !== undefined) failing.delete(oldest);
      }
      return true;
    },
  };
}
