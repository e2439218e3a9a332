import type { Runner } from "../database/pool.ts";
import { type PrunedTable, pruneRows } from "../database/prune.ts";
import type { DatabaseClock } from "../domain/database-clock.ts";
import type { BackgroundTask } from "../telemetry/background-metrics.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

const DAY_MS = 86_400_000;
/** A year and a month, so that a month can be compared with that of the year before. */
const USAGE_RETENTION_MS = 400 * DAY_MS;
/**
 * Long enough to review the last quarter. The audit event of the change that created a job is kept for
 * longer.
 */
const JOB_RETENTION_MS = 90 * DAY_MS;
/** What is said of the shapes of keys is about the last 30 days. */
const KEY_DAYS_RETENTION_MS = 40 * DAY_MS;
/** A busy service writes a few batches of rows in an hour. */
const INTERVAL_MS = 60_000;
/** Rows per statement: a few milliseconds. */
const BATCH_ROWS = 1000;

/**
 * Deletes audit events, hours of usage, what was observed of retention, finished record jobs and ended sessions of the
 * console that are older than their retention, in batches. Every replica does so without a leader: a replica skips rows that another one is deleting.
 */
export function createPruners(options: {
  readonly pool: Runner;
  readonly metrics: Pick<Metrics, "prunedRows">;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  /** How long audit events are kept: ONCEWARD_AUDIT_RETENTION. */
  readonly auditRetentionMs: number;
  /** Returns the handler of a task's errors. A failed task is repeated at its next interval. */
  readonly onFailed: (task: BackgroundTask) => (error: unknown) => void;
  /** Delay between two turns, ±20 %. Unset: a minute. */
  readonly intervalMs?: number;
}): readonly Repeating[] {
  const { pool, metrics, databaseClock, auditRetentionMs, onFailed, intervalMs = INTERVAL_MS } = options;
  const retentionsMs: Readonly<Record<PrunedTable, number>> = {
    audit_events: auditRetentionMs,
    usage_hours: USAGE_RETENTION_MS,
    insight_hours: USAGE_RETENTION_MS,
    insight_late_hours: USAGE_RETENTION_MS,
    insight_key_days: KEY_DAYS_RETENTION_MS,
    insight_sampled_keys: 0,
    record_jobs: JOB_RETENTION_MS,
    console_sessions: 0,
  };
  return Object.entries(retentionsMs).map(([name, retentionMs]) => {
    const table = name as PrunedTable;
    return createRepeating({
      intervalMs,
      async work() {
        const pruned = await pruneRows(pool, table, retentionMs, BATCH_ROWS, databaseClock.latestMs());
        metrics.prunedRows.inc({ table }, pruned);
        return pruned === BATCH_ROWS;
      },
      onFailed: onFailed(`prune_${table}`),
    });
  });
}
