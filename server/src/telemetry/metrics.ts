import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** The metrics of a replica. Names contain the unit; every label has a bounded number of values. */
export interface Metrics {
  readonly rpcDuration: Histogram<"service" | "method" | "code">;
  readonly sweepRecords: Counter<"action">;
  readonly sweepErrors: Counter;
  readonly sweepLag: Gauge;
  readonly jobRecords: Counter<"kind" | "action">;
  readonly prunedRows: Counter<"table">;
  readonly jobsUnfinished: Gauge;
  readonly connectionsLost: Counter;
  readonly redisErrors: Counter;
  readonly backgroundErrors: Counter<"task">;
  /** Records a statement that was run for a number of operations. */
  statementRan(run: StatementRun): void;
  /** Counts a Claim's outcome. */
  claimed(tenant: string, outcome: string): void;
  /** Counts a lookup of a cached completion. */
  countCacheLookup(layer: string, result: string): void;
  /** Counts a refusal by a quota, or in a dry run a call that would have been refused. */
  refusedByQuota(tenant: string, cause: string, mode: string): void;
  /** Adds the metrics that are read from their source on every export. */
  watch(sources: WatchedSources): void;
  /** Exports the metrics in the Prometheus text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** How a statement ran. */
export interface StatementRun {
  readonly statement: string;
  readonly operations: number;
  readonly durationMs: number;
  readonly failed: boolean;
}

/** Sources of the metrics that are read on every export. */
export interface WatchedSources {
  readonly pool: () => { readonly total: number; readonly idle: number; readonly waiting: number };
  readonly waiters: () => number;
  readonly liveReplicas: () => number;
  /** Memory of cached completions, in bytes. */
  readonly cacheBytes: () => number;
  /** Whether the service is degraded, by reason. */
  readonly degraded: () => Readonly<Record<string, boolean>>;
}

/** From 0.25 ms, the time of a single claim, to 16 s, longer than every timeout. */
const DURATION_BUCKETS_S = [
  0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.5, 2, 16,
];
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/** Tenants with a label of their own. Further tenants share `other`, so that the label stays bounded. */
const MAX_TENANT_LABELS = 100;

/**
 * Creates the metrics of one server in their own registry, because tests start several servers in one
 * process. Longer than a screen, because it is one list of declarations without branches.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one list of declarations.
export function createMetrics(version: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const labelled = new Set<string>();

  /** Returns the tenant's name, or `other` beyond the first 100 tenants. */
  function labelOf(tenant: string): string {
    if (labelled.size < MAX_TENANT_LABELS) labelled.add(tenant);
    return labelled.has(tenant) ? tenant : "other";
  }

  const admissionRefused = new Counter({
    name: "onceward_admission_refused_total",
    help: "Calls and operations beyond a tenant's quota, by cause; mode dry_run: they were admitted.",
    labelNames: ["tenant", "cause", "mode"],
    registers,
  });
  const countClaim = createTally({
    name: "onceward_claims_total",
    help: "Claims answered, by outcome; tenants past the first 100 count as 'other'.",
    labelNames: ["tenant", "outcome"],
    registers,
  });
  new Gauge({
    name: "onceward_build_info",
    help: "Always 1; the version is in the label.",
    labelNames: ["version"],
    registers,
  }).set({ version }, 1);
  const storeDuration = new Histogram({
    name: "onceward_store_duration_seconds",
    help: "Time from sending a statement to its rows, including the wait for a connection.",
    labelNames: ["statement"],
    buckets: DURATION_BUCKETS_S,
    registers,
  });
  const storeErrors = new Counter({
    name: "onceward_store_errors_total",
    help: "Statements that failed.",
    labelNames: ["statement"],
    registers,
  });
  const batchSize = new Histogram({
    name: "onceward_batch_size",
    help: "Operations per statement.",
    labelNames: ["statement"],
    buckets: SIZE_BUCKETS,
    registers,
  });
  return {
    rpcDuration: new Histogram({
      name: "onceward_rpc_duration_seconds",
      help: "Time from a call's arrival to its response, by service, method and status code.",
      labelNames: ["service", "method", "code"],
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    sweepRecords: new Counter({
      name: "onceward_sweep_records_total",
      help: "Records that the sweep deleted, or kept until a later deadline.",
      labelNames: ["action"],
      registers,
    }),
    sweepErrors: new Counter({
      name: "onceward_sweep_errors_total",
      help: "Sweeps that failed; they are retried at the next interval.",
      registers,
    }),
    sweepLag: new Gauge({
      name: "onceward_sweep_lag_seconds",
      help: "How long the most overdue record had been due at the last sweep; 0 if no record is due.",
      registers,
    }),
    jobRecords: new Counter({
      name: "onceward_record_job_records_total",
      help: "Records that record jobs examined and changed, by the kind of job.",
      labelNames: ["kind", "action"],
      registers,
    }),
    prunedRows: new Counter({
      name: "onceward_pruned_rows_total",
      help: "Audit events, hours of usage and finished record jobs deleted after their retention, by table.",
      labelNames: ["table"],
      registers,
    }),
    jobsUnfinished: new Gauge({
      name: "onceward_record_jobs_unfinished",
      help: "Record jobs of all tenants that are waiting or running.",
      registers,
    }),
    connectionsLost: new Counter({
      name: "onceward_pool_connections_lost_total",
      help: "Idle connections to Postgres that broke.",
      registers,
    }),
    statementRan({ statement, operations, durationMs, failed }) {
      storeDuration.observe({ statement }, durationMs / 1000);
      batchSize.observe({ statement }, operations);
      if (failed) storeErrors.inc({ statement });
    },
    claimed(tenant, outcome) {
      countClaim(labelOf(tenant), outcome);
    },
    refusedByQuota(tenant, cause, mode) {
      admissionRefused.inc({ tenant: labelOf(tenant), cause, mode });
    },
    backgroundErrors: new Counter({
      name: "onceward_background_errors_total",
      help: "Runs of background tasks that failed; they are retried at the next interval.",
      labelNames: ["task"],
      registers,
    }),
    countCacheLookup: createTally({
      name: "onceward_cache_requests_total",
      help: "Lookups of cached completions, by layer and result.",
      labelNames: ["layer", "result"],
      registers,
    }),
    redisErrors: new Counter({
      name: "onceward_redis_errors_total",
      help: "Failed connections and commands of Redis; no call fails with them.",
      registers,
    }),
    watch({ pool, waiters, liveReplicas, cacheBytes, degraded }) {
      new Gauge({
        name: "onceward_replicas",
        help: "Live replicas, as known to this one; they share rate quotas.",
        registers,
        collect() {
          this.set(liveReplicas());
        },
      });
      new Gauge({
        name: "onceward_cache_bytes",
        help: "Memory of cached completions.",
        registers,
        collect() {
          this.set(cacheBytes());
        },
      });
      new Gauge({
        name: "onceward_degraded",
        help: "1 while the service is degraded, by reason; its responses stay correct.",
        labelNames: ["reason"],
        registers,
        collect() {
          for (const [reason, is] of Object.entries(degraded())) this.set({ reason }, is ? 1 : 0);
        },
      });
      new Gauge({
        name: "onceward_waiters",
        help: "Claims that are waiting for a record to resolve.",
        registers,
        collect() {
          this.set(waiters());
        },
      });
      new Gauge({
        name: "onceward_pool_connections",
        help: "Connections to Postgres, by state, and calls that wait for one.",
        labelNames: ["state"],
        registers,
        collect() {
          const { total, idle, waiting } = pool();
          this.set({ state: "busy" }, total - idle);
          this.set({ state: "idle" }, idle);
          this.set({ state: "awaited" }, waiting);
        },
      });
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

export interface TallyOptions<First extends string, Second extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [First, Second];
  readonly registers: Registry[];
}

/**
 * Creates a counter for events of every operation. It counts in a map and passes the counts to prom-client
 * when the metrics are read, because a lookup of two labels in prom-client takes 0.25 µs and 200 bytes
 * (`server/decisions/0005-what-a-claim-costs.md`).
 *
 * @returns a function that adds one to the count of two label values.
 */
export function createTally<First extends string, Second extends string>({
  labelNames: [firstName, secondName],
  ...options
}: TallyOptions<First, Second>): (first: string, second: string) => void {
  const counts = new Map<string, Map<string, number>>();
  new Counter({
    ...options,
    labelNames: [firstName, secondName],
    collect() {
      for (const [first, seconds] of counts) {
        for (const [second, count] of seconds) {
          const labels = { [firstName]: first, [secondName]: second } as Record<First | Second, string>;
          this.inc(labels, count);
        }
      }
      counts.clear();
    },
  });
  return (first, second) => {
    let seconds = counts.get(first);
    if (seconds === undefined) {
      seconds = new Map();
      counts.set(first, seconds);
    }
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  };
}
