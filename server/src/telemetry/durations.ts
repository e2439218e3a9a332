import type { Histogram, Registry } from "prom-client";

/** From 0.25 ms, the time of a single claim, to 16 s, longer than every timeout. */
export const DURATION_BUCKETS_S = [
  0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.5, 2, 16,
];
const DURATION_BUCKETS_MS = DURATION_BUCKETS_S.map((boundS) => boundS * 1000);

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

interface DurationsOptions {
  readonly name: string;
  readonly help: string;
  readonly labelName: string;
  readonly registry: Registry;
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
}: DurationsOptions): (label: string) => Durations {
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
