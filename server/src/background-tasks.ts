import type { Logger } from "pino";
import { createRecordCounter } from "./admission/record-counter.ts";
import { createStorageTotals, type StorageTotals } from "./admission/storage-totals.ts";
import { createHeartbeat } from "./background/heartbeat.ts";
import { createJobWorker } from "./background/jobs/worker.ts";
import { createPruners } from "./background/pruner.ts";
import { createSweeper } from "./background/sweeper.ts";
import { createUsageFlusher } from "./background/usage-flusher.ts";
import { createUsageMeter, type UsageMeter } from "./background/usage-meter.ts";
import type { Config } from "./config/config.ts";
import type { AdministrationPool } from "./store/batching/administration-pool.ts";
import type { Pool } from "./store/pool.ts";
import type { SweptNamespace } from "./store/records/sweep-records.ts";
import type { Metrics } from "./telemetry/metrics.ts";

/** The background tasks of a replica. */
export interface Background {
  readonly usage: UsageMeter;
  readonly totals: StorageTotals;
  readonly liveReplicas: () => number;
  /** Starts all tasks. Resolves when the replica is registered as live. */
  start(): Promise<void>;
  /** Stops the tasks that change records. */
  stopWork(): Promise<void>;
  /** Stores the remaining counts and unregisters the replica. Nothing may be counted any more. */
  finish(): Promise<void>;
}

export interface BackgroundOptions {
  readonly config: Config;
  readonly pool: Pool;
  /** For tasks that scan and change many records. */
  readonly administrationPool: AdministrationPool;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** This replica. */
  readonly replica: { readonly id: string; readonly version: string };
  /** As HeartbeatOptions. */
  readonly lookAtInstallation: (pool: Pool) => Promise<unknown>;
  /** Returns the handler of a task's errors. A failed task is retried at its next interval. */
  readonly onFailed: (task: string) => (error: unknown) => void;
}

/** Records per statement of the sweep; a statement that takes too long halves it for a while. */
const SWEEP_BATCH_ROWS = 1000;

/** Creates the background tasks. Each runs on every replica, without a leader. */
export function createBackground(options: BackgroundOptions): Background {
  const {
    config,
    pool,
    administrationPool,
    metrics,
    log,
    replica,
    lookAtInstallation: look,
    onFailed,
  } = options;
  const usage = createUsageMeter(() => metrics.backgroundErrors.inc({ task: "count_usage" }));
  const heartbeat = createHeartbeat({ pool, replica, look, onFailed: onFailed("heartbeat") });
  const totals = createStorageTotals({ pool, onFailed: onFailed("store_totals") });
  const counter = createRecordCounter({
    pool: administrationPool.forTask("counts"),
    onFailed: onFailed("count_records"),
  });
  const jobWorker = createJobWorker({
    pool: administrationPool.forTask("jobs"),
    metrics,
    log,
    onFailed: onFailed("record_jobs"),
  });
  const pruners = createPruners({
    pool: administrationPool.forTask("pruning"),
    metrics,
    auditRetentionMs: config.ONCEWARD_AUDIT_RETENTION,
    onFailed,
  });
  const usageFlusher = createUsageFlusher({
    pool,
    meter: usage,
    replica,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("store_usage"),
  });
  const sweeper = createSweeper({
    pool,
    metrics,
    log,
    intervalMs: config.ONCEWARD_SWEEP_INTERVAL,
    batchRows: SWEEP_BATCH_ROWS,
    onSwept: countSwept,
  });

  function countSwept(byNamespace: readonly SweptNamespace[]): void {
    for (const { tenantId, namespace, deleted, freedBytes } of byNamespace) {
      if (deleted > 0) usage.count({ tenantId, namespace }, "swept", deleted);
      totals.add({ tenantId, records: -deleted, storedBytes: -freedBytes });
    }
  }

  return {
    usage,
    totals,
    liveReplicas: heartbeat.liveReplicas,
    async start() {
      await heartbeat.start();
      for (const task of [sweeper, jobWorker, usageFlusher, totals, counter, ...pruners]) task.start();
    },
    async stopWork() {
      await Promise.all([sweeper, jobWorker, counter, ...pruners].map((task) => task.stop()));
    },
    async finish() {
      await Promise.all([usageFlusher.stop(), totals.stop()]);
      await heartbeat.stop();
    },
  };
}
