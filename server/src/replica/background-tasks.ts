import { createRecordCounter } from "../access/record-counter.ts";
import type { StorageTotals } from "../access/storage-totals.ts";
import type { Usage } from "../admin/usage/create-usage.ts";
import { createSizeReader } from "../background/database-size.ts";
import type { Heartbeat, ReportState } from "../background/heartbeat.ts";
import type { KeyUse } from "../background/key-use.ts";
import { createPruners } from "../background/pruner.ts";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import type { CoreParts } from "../core-parts.ts";
import { findLabelledTenants } from "../database/tenants/tenants.ts";
import type { Insight } from "../insight/create-insight.ts";
import { createSweeper } from "../records/sweeper.ts";
import { MAX_TENANT_LABELS } from "../telemetry/tenant-labels.ts";
import type { Facts } from "./connect.ts";

interface BackgroundOptions {
  readonly facts: Facts;
  readonly core: CoreParts;
  /** Tasks of features that change records: they end before the calls that may wait for them are refused. */
  readonly tasks: readonly Repeating[];
  /** Tasks of features that store counts: they end after the last call was counted. */
  readonly flushes: readonly Repeating[];
  readonly usage: Usage;
  readonly insight: Insight;
  readonly heartbeat: Heartbeat;
  readonly keyUse: KeyUse;
  readonly totals: StorageTotals;
  /** Returns what each heartbeat stores. */
  readonly state: ReportState;
}

/** A statement finds a shard that was moved without this; a node that is back is noticed by it. */
const READ_SHARDS_INTERVAL_MS = 2000;
/** A new tenant's metrics are exported after this time. */
const READ_LABELS_INTERVAL_MS = 3000;

/** Creates the background tasks of the core, and joins those of the features. Each runs on every replica, without a leader. */
export function createBackground(options: BackgroundOptions) {
  const { facts, core, tasks, heartbeat, keyUse, totals, state } = options;
  const labels = createTenantLabelsTask(core);
  const sweeper = createSweep(options);
  const work: readonly Repeating[] = [
    createNodesTask(facts),
    sweeper,
    ...createScans(core),
    ...facts.stored.tasks(core),
    ...tasks,
  ];
  const flushes: readonly Repeating[] = [...options.flushes, keyUse, totals];
  return {
    /** As `createSweeper`. */
    sweepLateS: sweeper.lateS,
    /** Starts all tasks. Resolves when the replica is registered as live. */
    async start(): Promise<void> {
      await heartbeat.start(state);
      await labels.start();
      for (const task of [...work, ...flushes]) task.start();
    },
    /** Stops the tasks that change records. */
    async stopWork(): Promise<void> {
      await Promise.all([labels, ...work].map((task) => task.stop()));
    },
    /** Stores the remaining counts and unregisters the replica. Nothing may be counted after that. */
    async finish(): Promise<void> {
      await Promise.all(flushes.map((task) => task.stop()));
      // Last: the flush of usage writes the replica's row, which this removes.
      await heartbeat.stop();
    },
  };
}

/** Reads where the shards of the records are, if there are any, and tries nodes that did not answer. */
function createNodesTask({ shards, onFailed }: Facts): Repeating {
  return createRepeating({
    intervalMs: READ_SHARDS_INTERVAL_MS,
    async work() {
      await shards?.refresh();
    },
    onFailed: onFailed("read_shards"),
  });
}

function createSweep({ core, usage, insight, totals }: BackgroundOptions) {
  const { config, databaseClock, metrics, log } = core;
  return createSweeper({
    databaseClock,
    metrics,
    log,
    sampleSeed: insight.sampler.seed,
    pool: core.tasks.pool,
    intervalMs: config.ONCEWARD_SWEEP_INTERVAL,
    onSwept(byNamespace) {
      usage.onSwept(byNamespace);
      insight.sampler.swept(byNamespace);
      for (const { tenantId, deleted, freedBytes } of byNamespace)
        totals.add({ tenantId, records: -deleted, storedBytes: -freedBytes });
    },
  });
}

/** Creates the tasks that scan or change many rows, on the connections of administration. */
function createScans({ config, tasks, databaseClock, metrics, onFailed }: CoreParts): readonly Repeating[] {
  const counter = createRecordCounter({
    pool: tasks.administrationPool.forTask("counts"),
    onFailed: onFailed("count_records"),
  });
  const pruners = createPruners({
    pool: tasks.administrationPool.forTask("pruning"),
    databaseClock,
    metrics,
    onFailed,
    auditRetentionMs: config.ONCEWARD_AUDIT_RETENTION,
  });
  const sizes = createSizeReader(tasks.administrationPool.forTask("counts"), metrics, onFailed);
  return [counter, sizes, ...pruners];
}

/** Creates the task that reads which tenants have a label of their own. `start` resolves after the first time. */
function createTenantLabelsTask({ tasks, tenantLabels, onFailed }: CoreParts) {
  const refresh = () => tenantLabels.refresh(() => findLabelledTenants(tasks.pool, MAX_TENANT_LABELS));
  const repeating = createRepeating({
    intervalMs: READ_LABELS_INTERVAL_MS,
    work: refresh,
    onFailed: onFailed("tenant_labels"),
  });
  return {
    async start(): Promise<void> {
      await refresh();
      repeating.start();
    },
    stop: repeating.stop,
  };
}
