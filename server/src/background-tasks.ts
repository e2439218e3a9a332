import type { Logger } from "pino";
import { createRecordCounter } from "./core/admission/record-counter.ts";
import { createStorageTotals, type StorageTotals } from "./core/admission/storage-totals.ts";
import { createHeartbeat, type Heartbeat } from "./core/background/heartbeat.ts";
import { createKeyUse, type KeyUse } from "./core/background/key-use.ts";
import { createPruners } from "./core/background/pruner.ts";
import { createRepeating, type Repeating } from "./core/background/repeat.ts";
import { createSweeper } from "./core/background/sweeper.ts";
import { createTenantLabelsTask } from "./core/background/tenant-labels.ts";
import type { Config } from "./core/config/config.ts";
import type { DatabaseClockWatch } from "./core/domain/database-clock.ts";
import type { AdministrationPool } from "./core/store/batching/administration-pool.ts";
import type { Pool } from "./core/store/pool.ts";
import type { SweptNamespace } from "./core/store/records/sweep-records.ts";
import type { Beat } from "./core/store/replicas.ts";
import type { BackgroundTask } from "./core/telemetry/background-metrics.ts";
import type { Metrics } from "./core/telemetry/metrics.ts";
import type { TenantLabels } from "./core/telemetry/tenant-labels.ts";
import type { RecordEncryption } from "./features/encryption/record-encryption.ts";
import { createReencryption } from "./features/encryption/reencryption.ts";
import { createKeyHashes } from "./features/insight/domain/key-hashes.ts";
import { createKeyObserver } from "./features/insight/key-observer.ts";
import { createKeySampler } from "./features/insight/key-sampler.ts";
import { createAmbiguousCounter } from "./features/jobs/ambiguous-counter.ts";
import { createJobWorker } from "./features/jobs/worker.ts";
import { createUsageFlusher } from "./features/usage/usage-flusher.ts";
import { createUsageMeter, type UsageMeter } from "./features/usage/usage-meter.ts";

/** The background tasks of a replica. */
export interface Background {
  readonly usage: UsageMeter;
  readonly keyUse: Pick<KeyUse, "note">;
  readonly totals: StorageTotals;
  readonly liveReplicas: () => number;
  /** As Heartbeat. */
  readonly lastBeaten: Heartbeat["lastBeaten"];
  /** As AmbiguousCounter.counts. */
  readonly ambiguousRecords: () => ReadonlyMap<string, number>;
  /** As Sweeper. */
  readonly sweepLateS: () => number;
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
  /** As HeartbeatOptions.pool. */
  readonly heartbeatPool: Pool;
  /** For tasks that scan and change many records. */
  readonly administrationPool: AdministrationPool;
  readonly encryption: RecordEncryption;
  /** Is told by the heartbeat, and bounds what counts as ended. */
  readonly databaseClock: DatabaseClockWatch;
  readonly metrics: Metrics;
  readonly tenantLabels: TenantLabels;
  readonly log: Logger;
  /** This replica. */
  readonly replica: { readonly id: string; readonly version: string };
  /** As HeartbeatOptions. */
  readonly state: () => Pick<Beat, "degraded" | "load">;
  /** As HeartbeatOptions. */
  readonly heartbeatMs: number | undefined;
  /** As HeartbeatOptions. */
  readonly lookAtInstallation: (pool: Pool) => Promise<unknown>;
  /** Reads where the shards of the records are; without effect on a plain Postgres. */
  readonly readShards: () => Promise<unknown>;
  /** Wakes the calls that wait for a record, on every replica. */
  readonly onSettled: (name: string) => void;
  /** Returns the handler of a task's errors. A failed task is retried at its next interval. */
  readonly onFailed: (task: BackgroundTask) => (error: unknown) => void;
}

/** Records per statement of the sweep; a statement that takes too long halves it for a while. */
const SWEEP_BATCH_ROWS = 1000;
/** A statement finds a shard that was moved without this; a node that is back is noticed by it. */
const READ_SHARDS_INTERVAL_MS = 2000;

/** Creates the background tasks. Each runs on every replica, without a leader. */
export function createBackground(options: BackgroundOptions): Background {
  const { config, pool, databaseClock, metrics, log, tenantLabels, replica, onFailed } = options;
  const { usage, sampler, observer } = createSampledUsage(options);
  const heartbeat = createHeartbeat({
    pool: options.heartbeatPool,
    replica,
    state: options.state,
    look: options.lookAtInstallation,
    databaseClock,
    onFailed: onFailed("heartbeat"),
    intervalMs: options.heartbeatMs,
  });
  const shards = createRepeating({
    intervalMs: READ_SHARDS_INTERVAL_MS,
    work: options.readShards,
    onFailed: onFailed("read_shards"),
  });
  const labels = createTenantLabelsTask({ pool, tenantLabels, onFailed: onFailed("tenant_labels") });
  const totals = createStorageTotals({ pool, onFailed: onFailed("store_totals") });
  const { ambiguous, scans } = createScans(options);
  const usageFlusher = createUsageFlusher({
    pool,
    meter: usage,
    replica,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("store_usage"),
  });
  const keyUse = createKeyUse({
    runner: pool,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("store_key_use"),
  });
  const sweeper = createSweeper({
    pool,
    databaseClock,
    metrics,
    log,
    intervalMs: config.ONCEWARD_SWEEP_INTERVAL,
    batchRows: SWEEP_BATCH_ROWS,
    onSwept: countSwept,
    sampleSeed: sampler.seed,
  });

  function countSwept(byNamespace: readonly SweptNamespace[]): void {
    sampler.swept(byNamespace);
    observer.swept(byNamespace);
    for (const { tenantId, namespace, deleted, freedBytes } of byNamespace) {
      if (deleted > 0) usage.count({ tenantId, namespace }, "swept", deleted);
      totals.add({ tenantId, records: -deleted, storedBytes: -freedBytes });
    }
  }

  return {
    usage,
    keyUse,
    totals,
    liveReplicas: heartbeat.liveReplicas,
    lastBeaten: heartbeat.lastBeaten,
    sweepLateS: sweeper.lateS,
    ambiguousRecords: ambiguous.counts,
    async start() {
      await heartbeat.start();
      await labels.start();
      for (const task of [shards, sweeper, usageFlusher, sampler, observer, keyUse, totals, ...scans])
        task.start();
    },
    async stopWork() {
      await Promise.all([shards, labels, sweeper, ...scans].map((task) => task.stop()));
    },
    async finish() {
      await Promise.all([
        // The last flush of usage writes the replica's row, which the heartbeat removes.
        usageFlusher.stop().then(heartbeat.stop),
        ...[sampler, observer, keyUse, totals].map((task) => task.stop()),
      ]);
    },
  };
}

/** Creates the tasks that scan or change many records, on the connections of administration. */
function createScans(options: BackgroundOptions) {
  const { config, administrationPool, encryption, databaseClock, metrics, log } = options;
  const { tenantLabels, onSettled, onFailed } = options;
  const counter = createRecordCounter({
    pool: administrationPool.forTask("counts"),
    onFailed: onFailed("count_records"),
  });
  const ambiguous = createAmbiguousCounter({
    pool: administrationPool.forTask("counts"),
    tenants: () => tenantLabels.tenants(),
    onFailed: onFailed("count_ambiguous"),
  });
  const jobWorker = createJobWorker({
    pool: administrationPool.forTask("jobs"),
    encryption,
    databaseClock,
    metrics,
    log,
    onFailed: onFailed("record_jobs"),
    onSettled,
  });
  const pruners = createPruners({
    pool: administrationPool.forTask("pruning"),
    databaseClock,
    metrics,
    auditRetentionMs: config.ONCEWARD_AUDIT_RETENTION,
    onFailed,
  });
  return { ambiguous, scans: [jobWorker, counter, ambiguous, ...createEncrypting(options), ...pruners] };
}

/** Without keys there is nothing that could be encrypted or decrypted, and so no task. */
function createEncrypting(options: BackgroundOptions): readonly Repeating[] {
  const { config, administrationPool, encryption, metrics, onFailed } = options;
  if (encryption.keyring.ids.length === 0) return [];
  return [
    createReencryption({
      pool: administrationPool.forTask("encryption"),
      encryption,
      metrics,
      recordsPerSecond: config.ONCEWARD_ENCRYPTION_RATE,
      onFailed: onFailed("encrypt_records"),
    }),
  ];
}

/** Creates the meter, and the sampler and the observer that take first claims from it. */
function createSampledUsage({ config, pool, metrics, onFailed }: BackgroundOptions) {
  const usage = createUsageMeter(() => metrics.backgroundErrors.inc({ task: "count_usage" }), {
    isSampled: (of) => sampler.isSampled(of),
    onFull: () => sampler.selectClaims(),
    fingerprintShiftOf: (of) => observer.fingerprintShiftOf(of),
    onObservedFull: () => observer.takeClaims(),
  });
  const sampler = createKeySampler({
    pool,
    takeFirstClaims: usage.takeFirstClaims,
    pepper: config.ONCEWARD_API_KEY_PEPPER,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("sample_keys"),
    onDropped: () => metrics.backgroundErrors.inc({ task: "sample_keys" }),
  });
  const observer = createKeyObserver({
    pool,
    takeObserved: usage.takeObserved,
    hashes: createKeyHashes(config.ONCEWARD_API_KEY_PEPPER),
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("observe_keys"),
    onDropped: () => metrics.backgroundErrors.inc({ task: "observe_keys" }),
  });
  return { usage, sampler, observer };
}
