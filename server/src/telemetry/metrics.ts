import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { OperationKind } from "../domain/operation.ts";
import { createBackgroundMetrics, metricsOf } from "./background-metrics.ts";
import { TenantLabels } from "./tenant-labels.ts";
import { addWatchedGauges, type WatchedSources } from "./watched-metrics.ts";

/** The metrics of a replica. Names contain the unit; every label has a bounded number of values. */
export type Metrics = ReturnType<typeof createMetrics>;

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
  collectDefaultMetrics({ register: registry });
  const { counter, watchedGauge } = metricsOf(registry);
  const histogram = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets = DURATION_BUCKETS_S,
  ) => new Histogram({ name, help, labelNames, buckets, registers: [registry] });
  /** The values of the labels beside `tenant` are counted as one text, separated by spaces. */
  const tenantTally = (name: string, help: string, labelNames: readonly string[]) =>
    createTally<number>(registry, name, help, ["tenant", ...labelNames], (tenantId, values) => {
      const tenant = tenantLabels.labelOf(tenantId);
      const parts = values.split(" ");
      const labels = Object.fromEntries(labelNames.map((label, index) => [label, parts[index] ?? ""]));
      return tenant === undefined ? undefined : { tenant, ...labels };
    });
  const countRefusal = tenantTally(
    "onceward_admission_refused_total",
    "Calls and operations beyond a tenant's quota, by cause; mode dry_run: they were admitted.",
    ["cause", "mode"],
  );
  const countHeld = tenantTally(
    "onceward_tenant_share_held_total",
    "Operations that waited because their tenant had its share of operations in flight.",
    [],
  );
  let operations = 0;
  const countOperation = createTally(
    registry,
    "onceward_operations_total",
    "Operations answered, by kind and outcome or reason of the error, over every transport.",
    ["kind", "outcome"],
    (kind: string, outcome) => ({ kind, outcome }),
  );
  const operationDurationOf = createDurations(
    registry,
    "onceward_operation_duration_seconds",
    "Time from the arrival of an operation's message to its outcome, over every transport.",
    "kind",
  );
  const operationDurations = {
    claim: operationDurationOf("claim"),
    complete: operationDurationOf("complete"),
    release: operationDurationOf("release"),
    extend_lease: operationDurationOf("extend_lease"),
    lookup: operationDurationOf("lookup"),
  };
  const queueDepths = new Map<string, () => number>();
  watchedGauge(
    "onceward_batch_queue_depth",
    "Operations that are queued for their statement.",
    () => Array.from(queueDepths, ([statement, depth]) => [statement, depth()] as const),
    "statement",
  );
  const queueWaitOf = createDurations(
    registry,
    "onceward_batch_queue_wait_seconds",
    "Time that an operation was queued before its statement was sent.",
    "statement",
  );
  const deadlineDrops = counter(
    "onceward_deadline_drops_total",
    "Operations without effect, because their deadline passed before their statement was sent.",
  );
  watchedGauge(
    "onceward_build_info",
    "Always 1; the version is in the label.",
    () => [[version, 1]],
    "version",
  );
  const storeDuration = histogram(
    "onceward_store_duration_seconds",
    "Time from sending a statement to its rows, including the wait for a connection.",
    ["statement"],
  );
  const storeErrors = counter("onceward_store_errors_total", "Statements that failed.", ["statement"]);
  const batchSize = histogram(
    "onceward_batch_size",
    "Operations per statement.",
    ["statement"],
    SIZE_BUCKETS,
  );
  return {
    ...createBackgroundMetrics(registry),
    rpcDuration: histogram(
      "onceward_rpc_duration_seconds",
      "Time from a call's arrival to its response, by service, method and status code.",
      ["service", "method", "code"],
    ),
    /** Counts a lookup of a cached completion. */
    countCacheLookup: createTally(
      registry,
      "onceward_cache_requests_total",
      "Lookups of cached completions, by layer and result.",
      ["layer", "result"],
      (layer: string, result) => ({ layer, result }),
    ),
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
    claimed: tenantTally("onceward_claims_total", "Claims answered, by outcome.", ["outcome"]),
    /** Counts a refusal by a quota, or in a dry run a call that would have been refused. */
    refusedByQuota(tenantId: number, cause: string, mode: string): void {
      countRefusal(tenantId, `${cause} ${mode}`);
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
    droppedByDeadline: () => deadlineDrops.inc(),
    /** Adds the metrics that are read from their source on every export. */
    watch: (sources: WatchedSources) => addWatchedGauges(registry, sources),
    /** Returns the metrics with their values. */
    samples: () => registry.getMetricsAsJSON(),
    /** Exports the metrics in the Prometheus text format. */
    render: () => registry.metrics(),
    contentType: registry.contentType,
    /** Returns the name, type and labels of every metric. The registry's types omit them. */
    describe: () =>
      registry.getMetricsAsArray() as unknown as readonly {
        readonly name: string;
        readonly type: string;
        readonly labelNames: readonly string[];
      }[],
  };
}

/**
 * Creates a counter for events of every operation. It counts in a map and passes the counts to prom-client
 * when the metrics are read, because a lookup of two labels in prom-client takes 0.25 µs and 200 bytes
 * (`server/decisions/0005-what-a-claim-costs.md`).
 *
 * @param labelsOf Returns the labels of what is counted; undefined while they are not known: it is exported later.
 * @returns a function that adds to the count of two values, from which the labels follow.
 */
export function createTally<First extends string | number>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  labelsOf: (first: First, second: string) => Readonly<Record<string, string>> | undefined,
): (first: First, second: string, count?: number) => void {
  const counts = new Map<First, Map<string, number>>();
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      for (const [first, seconds] of counts) {
        for (const [second, count] of seconds) {
          const labels = labelsOf(first, second);
          if (labels === undefined) continue;
          this.inc(labels, count);
          seconds.delete(second);
        }
        if (seconds.size === 0) counts.delete(first);
      }
    },
  });
  return (first, second, count = 1) => {
    let seconds = counts.get(first);
    if (seconds === undefined) {
      seconds = new Map();
      counts.set(first, seconds);
    }
    seconds.set(second, (seconds.get(second) ?? 0) + count);
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
  samples(name: string, labels: Readonly<Record<string, string>>) {
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

/**
 * Creates a histogram of durations for events of every operation. It counts in an array, for the reason of
 * `createTally`.
 *
 * @returns a function that returns the recorder of a label value, to be kept by its user.
 */
function createDurations(
  registry: Registry,
  name: string,
  help: string,
  labelName: string,
): (label: string) => Durations {
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
