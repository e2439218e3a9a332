import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { OperationKind } from "../domain/operation.ts";
import { createBackgroundMetrics } from "./background-metrics.ts";
import { TenantLabels } from "./tenant-labels.ts";
import { addWatchedGauges, type WatchedSources } from "./watched-metrics.ts";

/** The metrics of a replica. Names contain the unit; every label has a bounded number of values. */
export type Metrics = ReturnType<typeof createMetrics>;

/** A metric without its values. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** How a statement ran. */
export interface StatementRun {
  readonly statement: string;
  readonly operations: number;
  readonly durationMs: number;
  readonly failed: boolean;
}

/** From 0.25 ms, the time of a single claim, to 16 s, longer than every timeout. */
const DURATION_BUCKETS_S = [
  0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.5, 2, 16,
];
const DURATION_BUCKETS_MS = DURATION_BUCKETS_S.map((boundS) => boundS * 1000);
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Creates the metrics of one server in their own registry, because tests start several servers in one process. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one list of declarations.
export function createMetrics(version: string, tenantLabels = new TenantLabels()) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const countRefusal = createTenantTally({
    name: "onceward_admission_refused_total",
    help: "Calls and operations beyond a tenant's quota, by cause; mode dry_run: they were admitted.",
    labelNames: ["cause", "mode"],
    tenantLabels,
    registers,
  });
  const countHeld = createTenantTally({
    name: "onceward_tenant_share_held_total",
    help: "Operations that waited because their tenant had its share of operations in flight.",
    labelNames: [],
    tenantLabels,
    registers,
  });
  const countClaim = createTenantTally({
    name: "onceward_claims_total",
    help: "Claims answered, by outcome.",
    labelNames: ["outcome"],
    tenantLabels,
    registers,
  });
  let operations = 0;
  const countOperation = createTally({
    name: "onceward_operations_total",
    help: "Operations answered, by kind and outcome or reason of the error, over every transport.",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const operationDurationOf = createDurations({
    name: "onceward_operation_duration_seconds",
    help: "Time from the arrival of an operation's message to its outcome, over every transport.",
    labelName: "kind",
    registry,
  });
  const operationDurations = {
    claim: operationDurationOf("claim"),
    complete: operationDurationOf("complete"),
    release: operationDurationOf("release"),
    extend_lease: operationDurationOf("extend_lease"),
    lookup: operationDurationOf("lookup"),
  };
  const queueDepths = new Map<string, () => number>();
  new Gauge({
    name: "onceward_batch_queue_depth",
    help: "Operations that are queued for their statement.",
    labelNames: ["statement"],
    registers,
    collect() {
      for (const [statement, depth] of queueDepths) this.set({ statement }, depth());
    },
  });
  const queueWaitOf = createDurations({
    name: "onceward_batch_queue_wait_seconds",
    help: "Time that an operation was queued before its statement was sent.",
    labelName: "statement",
    registry,
  });
  const deadlineDrops = new Counter({
    name: "onceward_deadline_drops_total",
    help: "Operations without effect, because their deadline passed before their statement was sent.",
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
    ...createBackgroundMetrics(registry),
    rpcDuration: new Histogram({
      name: "onceward_rpc_duration_seconds",
      help: "Time from a call's arrival to its response, by service, method and status code.",
      labelNames: ["service", "method", "code"],
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    /** Counts a lookup of a cached completion. */
    countCacheLookup: createTally({
      name: "onceward_cache_requests_total",
      help: "Lookups of cached completions, by layer and result.",
      labelNames: ["layer", "result"],
      registers,
    }),
    /** Records a statement that was run for a number of operations. */
    statementRan({ statement, operations, durationMs, failed }: StatementRun): void {
      storeDuration.observe({ statement }, durationMs / 1000);
      batchSize.observe({ statement }, operations);
      if (failed) storeErrors.inc({ statement });
    },
    /** Records an operation that was answered: its outcome, or the reason of its error, in lower case. */
    operationEnded(kind: OperationKind, outcome: string, durationMs: number): void {
      operations++;
      countOperation(kind, outcome);
      operationDurations[kind].observe(durationMs);
    },
    /** Returns the number of operations that were recorded. */
    operations: () => operations,
    /** Counts a Claim's outcome. */
    claimed(tenantId: number, outcome: string): void {
      countClaim(tenantId, outcome, 1);
    },
    /** Counts a refusal by a quota, or in a dry run a call that would have been refused. */
    refusedByQuota(tenantId: number, cause: string, mode: string): void {
      countRefusal(tenantId, `${cause} ${mode}`, 1);
    },
    /** Counts operations that have to wait because their tenant has its share of operations in flight. */
    heldToShare(tenantId: number, operations: number): void {
      countHeld(tenantId, "", operations);
    },
    /** Adds a queue. `depth` returns the number of its operations. Returns the recorder of how long they wait. */
    queueAdded(statement: string, depth: () => number): Durations {
      queueDepths.set(statement, depth);
      return queueWaitOf(statement);
    },
    /** Counts an operation whose deadline passed before its statement. */
    droppedByDeadline(): void {
      deadlineDrops.inc();
    },
    /** Adds the metrics that are read from their source on every export. */
    watch: (sources: WatchedSources) => addWatchedGauges(registry, sources),
    /** Exports the metrics in the Prometheus text format. */
    render: () => registry.metrics(),
    contentType: registry.contentType,
    /** Returns the name, type and labels of every metric. The registry's types omit them. */
    describe: () => registry.getMetricsAsArray() as unknown as readonly MetricDescription[],
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

/**
 * Creates a counter for events of tenants, which counts as `createTally` does. A tenant's counts are exported
 * when its label is known.
 *
 * @returns a function that adds to the count of a tenant and of the other labels' values, separated by spaces.
 */
function createTenantTally({
  labelNames,
  tenantLabels,
  ...options
}: {
  readonly name: string;
  readonly help: string;
  /** The labels beside `tenant`. */
  readonly labelNames: readonly string[];
  readonly tenantLabels: TenantLabels;
  readonly registers: Registry[];
}): (tenantId: number, values: string, count: number) => void {
  const counts = new Map<number, Map<string, number>>();
  new Counter({
    ...options,
    labelNames: ["tenant", ...labelNames],
    collect() {
      for (const [tenantId, ofTenant] of counts) {
        const tenant = tenantLabels.labelOf(tenantId);
        if (tenant === undefined) continue;
        for (const [values, count] of ofTenant) {
          const parts = values.split(" ");
          const labels = Object.fromEntries(labelNames.map((name, index) => [name, parts[index] ?? ""]));
          this.inc({ tenant, ...labels }, count);
        }
        counts.delete(tenantId);
      }
    },
  });
  return (tenantId, values, count) => {
    let ofTenant = counts.get(tenantId);
    if (ofTenant === undefined) {
      ofTenant = new Map();
      counts.set(tenantId, ofTenant);
    }
    ofTenant.set(values, (ofTenant.get(values) ?? 0) + count);
  };
}

/** Records durations of one label value. */
export class Durations {
  /** How many durations are in each bucket, the last one beyond all bounds. */
  readonly #counts = new Array<number>(DURATION_BUCKETS_MS.length + 1).fill(0);
  #sumMs = 0;

  observe(durationMs: number): void {
    let bucket = 0;
    while (bucket < DURATION_BUCKETS_MS.length && durationMs > (DURATION_BUCKETS_MS[bucket] as number))
      bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sumMs += durationMs;
  }

  /** Returns the samples of a Prometheus histogram with these labels. */
  samples(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    let count = 0;
    const buckets = this.#counts.map((inBucket, index) => {
      count += inBucket;
      const le = String(DURATION_BUCKETS_S[index] ?? "+Inf");
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sumMs / 1000 },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * Creates a histogram of durations for events of every operation. It counts in an array, for the reason of
 * `createTally`.
 *
 * @returns a function that returns the recorder of a label value, to be kept by its user.
 */
export function createDurations({
  name,
  help,
  labelName,
  registry,
}: {
  readonly name: string;
  readonly help: string;
  readonly labelName: string;
  readonly registry: Registry;
}): (label: string) => Durations {
  const recorders = new Map<string, Durations>();
  const histogram = {
    name,
    type: "histogram",
    labelNames: [labelName],
    async get() {
      const values = [...recorders].flatMap(([label, recorder]) =>
        recorder.samples(name, { [labelName]: label }),
      );
      return { name, help, type: this.type, values, aggregator: "sum" };
    },
  };
  // The registry needs the name and `get` of a metric only.
  registry.registerMetric(histogram as unknown as Histogram);
  return (label) => {
    const recorder = recorders.get(label) ?? new Durations();
    recorders.set(label, recorder);
    return recorder;
  };
}
