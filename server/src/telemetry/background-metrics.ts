import { Counter, Gauge, type Registry } from "prom-client";

/** The background tasks that report their failures. */
export const BACKGROUND_TASKS = [
  "heartbeat",
  "read_shards",
  "store_usage",
  "count_usage",
  "store_key_histories",
  "store_key_use",
  "store_totals",
  "count_records",
  "count_ambiguous",
  "record_jobs",
  "encrypt_records",
  "prune_audit_events",
  "prune_usage_hours",
  "prune_record_jobs",
  "prune_console_sessions",
  "prune_insight_hours",
  "prune_insight_late_hours",
  "prune_insight_key_days",
  "prune_insight_sampled_keys",
  "read_database_size",
  "sample_keys",
  "tenant_labels",
  "load_jwks",
  "export_spans",
  "export_metrics",
  "read_tls_files",
] as const;
export type BackgroundTask = (typeof BACKGROUND_TASKS)[number];

const UNREADABLE_CAUSES = [{ cause: "key_missing" }, { cause: "not_authentic" }];

/** Creates the metrics of background tasks and of rare events in a registry. */
export function createBackgroundMetrics(registry: Registry) {
  const { counter, gauge } = metricsOf(registry);
  return {
    sweepRecords: counter(
      "onceward_sweep_records_total",
      "Records that the sweep deleted, or kept until a later deadline.",
      ["action"],
    ),
    sweepErrors: counter(
      "onceward_sweep_errors_total",
      "Sweeps that failed; they are retried at the next interval.",
    ),
    sweepLag: gauge(
      "onceward_sweep_lag_seconds",
      "How long the most overdue record had been due at the last sweep; 0 if no record is due.",
    ),
    jobRecords: counter(
      "onceward_record_job_records_total",
      "Records that record jobs examined and changed, by the kind of job.",
      ["kind", "action"],
    ),
    prunedRows: counter(
      "onceward_pruned_rows_total",
      "Audit events, hours of usage and of observed retention, sampled keys, shapes of keys, finished record jobs and sessions of the console deleted after their retention, by table.",
      ["table"],
    ),
    databaseBytes: gauge("onceward_database_bytes", "The size of the database."),
    jobsUnfinished: gauge(
      "onceward_record_jobs_unfinished",
      "Record jobs of all tenants that are waiting or running.",
    ),
    unreadableRecords: counter(
      "onceward_unreadable_records_total",
      "Reads of records that could not be decrypted, by cause.",
      ["cause"],
      UNREADABLE_CAUSES,
    ),
    encryptionRecords: counter(
      "onceward_encryption_records_total",
      "Records that the passes after a change of encryption keys examined, changed, skipped or could not read.",
      ["action"],
    ),
    encryptionUnfinished: gauge(
      "onceward_encryption_unfinished",
      "1 while records may be stored under another encryption key than the current one.",
    ),
    connectionsLost: counter(
      "onceward_pool_connections_lost_total",
      "Idle connections to Postgres that broke.",
    ),
    redisErrors: counter(
      "onceward_redis_errors_total",
      "Failed connections and commands of Redis; no call fails with them.",
    ),
    backgroundErrors: counter(
      "onceward_background_errors_total",
      "Runs of background tasks that failed; they are retried at the next interval.",
      ["task"],
      BACKGROUND_TASKS.map((task) => ({ task })),
    ),
    installationChanges: counter(
      "onceward_installation_changes_total",
      "How often this replica noticed that the database was restored or replaced, or a standby promoted.",
    ),
    databaseClockMoves: counter(
      "onceward_database_clock_moves_total",
      "How often the database's clock left its course, or replicas disagreed about it.",
    ),
  };
}

/** Returns functions that create metrics in a registry. */
export function metricsOf(registry: Registry) {
  const registers = [registry];
  return {
    /** @param fromZero The labels that are exported as 0 before the first event: Prometheus sees that as an increase. */
    counter<Label extends string>(
      name: string,
      help: string,
      labelNames: readonly Label[] = [],
      fromZero: readonly Record<Label, string>[] = [],
    ): Counter<Label> {
      const made = new Counter<Label>({ name, help, labelNames, registers });
      for (const labels of fromZero) made.inc(labels, 0);
      return made;
    },
    gauge: (name: string, help: string) => new Gauge({ name, help, registers }),
    /** Adds a gauge that is read on every export: a value, or with a label the values by the label's value. */
    watchedGauge(
      name: string,
      help: string,
      read: () => number | Iterable<readonly [string, number]>,
      label?: string,
    ): void {
      new Gauge({
        name,
        help,
        labelNames: label === undefined ? [] : [label],
        registers,
        collect() {
          const value = read();
          if (typeof value === "number" || label === undefined) return this.set(Number(value));
          // Tenants' values end with their tenant.
          this.reset();
          for (const [labelValue, each] of value) this.set({ [label]: labelValue }, each);
        },
      });
    },
  };
}
