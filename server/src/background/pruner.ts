import type { Runner } from "../store/pool.ts";
import { type PrunedTable, pruneRows } from "../store/prune.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRepeating, type Repeating } from "./repeat.ts";

export interface PrunerOptions {
  readonly pool: Runner;
  readonly metrics: Pick<Metrics, "prunedRows">;
  /** How long audit events are kept: ONCEWARD_AUDIT_RETENTION. */
  readonly auditRetentionMs: number;
  /** Told of a turn that failed; the others and the next ones go on. */
  readonly onFailed: (task: string) => (error: unknown) => void;
  /** Between two looks, ±20 %. Unset: a minute. */
  readonly intervalMs?: number;
}

const DAY_MS = 86_400_000;
/** A year can be compared with the one before, as with the longest retention of records. */
const USAGE_RETENTION_MS = 400 * DAY_MS;
/** Long enough to see what was done in the last quarter; the audit has the change that made the job for longer. */
const JOB_RETENTION_MS = 90 * DAY_MS;
/** An hour of a busy service's rows is a few batches. */
const INTERVAL_MS = 60_000;
/** Rows per statement: a few milliseconds' worth. */
const BATCH_ROWS = 1000;

/**
 * Deletes audit events, hours of usage and finished record jobs that are older than their retention, batch by batch. Every
 * replica does, and none is the leader: each takes rows that no other is deleting.
 */
export function createPruners({
  pool,
  metrics,
  auditRetentionMs,
  onFailed,
  intervalMs = INTERVAL_MS,
}: PrunerOptions): readonly Repeating[] {
  const retentionsMs: Readonly<Record<PrunedTable, number>> = {
    audit_events: auditRetentionMs,
    usage_hours: USAGE_RETENTION_MS,
    record_jobs: JOB_RETENTION_MS,
  };
  return Object.entries(retentionsMs).map(([name, retentionMs]) => {
    const table = name as PrunedTable;
    return createRepeating({
      intervalMs,
      async work() {
        const pruned = await pruneRows(pool, table, retentionMs, BATCH_ROWS);
        metrics.prunedRows.inc({ table }, pruned);
        return pruned === BATCH_ROWS;
      },
      onFailed: onFailed(`prune_${table}`),
    });
  });
}
