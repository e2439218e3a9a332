import type { JobTurn } from "./work-batch.ts";

/** Which tenant's job a replica works at next: tenants take turns, and one whose job fails is passed over for a while. */
export interface JobTurns {
  next(nowMs: number): JobTurn;
  /** The job that was taken last had a batch done. */
  succeeded(): void;
  /** The job that was taken last failed; false: none was taken, and so it is not a job that failed. */
  failed(nowMs: number): boolean;
}

/** Rows per transaction: few, so that no lock is held for long, and claims have their turns between. */
const BATCH_ROWS = 500;
/** From the first failure in a row, doubled with each. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/** Of tenants whose job failed; with more, the first is tried again before its pause is over. */
const MAX_FAILING = 1000;

interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
  /** Halved by each failure, doubled by each success: what is too much for a statement's time limit is done in parts. */
  readonly limit: number;
}

/** @see JobTurns */
export function createJobTurns(): JobTurns {
  const failing = new Map<number, Failing>();
  let lastTenantId = 0;
  let takenTenantId: number | undefined;

  return {
    next(nowMs) {
      takenTenantId = undefined;
      return {
        afterTenantId: lastTenantId,
        besides: [...failing].flatMap(([tenantId, { untilMs }]) => (untilMs > nowMs ? [tenantId] : [])),
        limitOf: (tenantId) => failing.get(tenantId)?.limit ?? BATCH_ROWS,
        onTaken(tenantId) {
          takenTenantId = tenantId;
          lastTenantId = tenantId;
        },
      };
    },

    succeeded() {
      const was = takenTenantId === undefined ? undefined : failing.get(takenTenantId);
      if (takenTenantId === undefined || was === undefined) return;
      const limit = was.limit * 2;
      if (limit >= BATCH_ROWS) failing.delete(takenTenantId);
      else failing.set(takenTenantId, { pauseMs: 0, untilMs: 0, limit });
    },

    failed(nowMs) {
      if (takenTenantId === undefined) return false;
      const { pauseMs, limit } = failing.get(takenTenantId) ?? { pauseMs: 0, limit: BATCH_ROWS };
      const nextPauseMs = Math.min(MAX_PAUSE_MS, Math.max(FIRST_PAUSE_MS, pauseMs * 2));
      failing.delete(takenTenantId);
      failing.set(takenTenantId, {
        pauseMs: nextPauseMs,
        untilMs: nowMs + nextPauseMs,
        limit: Math.max(1, Math.floor(limit / 2)),
      });
      if (failing.size > MAX_FAILING) {
        const [oldest] = failing.keys();
        if (oldest !== undefined) failing.delete(oldest);
      }
      return true;
    },
  };
}
