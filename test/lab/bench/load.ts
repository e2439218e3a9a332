import { ascending, median, percentile } from "./statistics.ts";

/** One operation of one caller, verified. */
export type Step = () => Promise<unknown>;

/** How a step is repeated. */
export interface Pace {
  /** Each makes its next call when its last one is answered. */
  readonly callers: number;
  readonly slices: number;
  readonly sliceMs: number;
  readonly warmUpMs: number;
}

/** The measurements of one slice. */
export interface Slice {
  readonly perSecond: number;
  /** Sorted. */
  readonly latenciesMs: readonly number[];
}

/** Medians over the slices, so that a hiccup of the machine in one of them doesn't count. */
export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * Repeats a step for `durationMs` and counts the steps that ended within it; then waits for those in
 * progress.
 *
 * @throws the first error of a step, or the signal's reason.
 */
export async function runSlice(
  step: Step,
  { callers, durationMs }: { readonly callers: number; readonly durationMs: number },
  signal: AbortSignal,
): Promise<Slice> {
  const latenciesMs: number[] = [];
  let failed = false;
  const endsAtMs = performance.now() + durationMs;
  const call = async () => {
    try {
      let begunAtMs = performance.now();
      while (begunAtMs < endsAtMs && !failed) {
        signal.throwIfAborted();
        await step();
        const nowMs = performance.now();
        if (nowMs <= endsAtMs) latenciesMs.push(nowMs - begunAtMs);
        begunAtMs = nowMs;
      }
    } catch (error) {
      failed = true;
      throw error;
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: callers }, call));
  for (const end of settled) if (end.status === "rejected") throw end.reason;
  return { perSecond: latenciesMs.length / (durationMs / 1000), latenciesMs: ascending(latenciesMs) };
}

/**
 * Measures several steps in short alternating slices, so that disturbances of the machine hit all of them.
 */
export async function alternate<Name extends string>(
  steps: Readonly<Record<Name, Step>>,
  pace: Pace,
  signal: AbortSignal,
): Promise<Readonly<Record<Name, Measured>>> {
  const names = Object.keys(steps) as Name[];
  const slices = new Map<Name, Slice[]>(names.map((name) => [name, []]));
  for (const name of names) await runSlice(steps[name], { ...pace, durationMs: pace.warmUpMs }, signal);
  for (let turn = 0; turn < pace.slices; turn++) {
    for (const name of turn % 2 === 0 ? names : names.toReversed()) {
      slices.get(name)?.push(await runSlice(steps[name], { ...pace, durationMs: pace.sliceMs }, signal));
    }
  }
  const measured = [...slices].map(([name, own]) => [name, summarize(own)] as const);
  return Object.fromEntries(measured) as Readonly<Record<Name, Measured>>;
}

/** Measures one step alone. */
export async function measure(step: Step, pace: Pace, signal: AbortSignal): Promise<Measured> {
  return (await alternate({ alone: step }, pace, signal)).alone;
}

/**
 * Returns medians over slices. A slice without an answer, as on a busy machine, has no latencies.
 *
 * @throws if no slice has an answer.
 */
export function summarize(slices: readonly Slice[]): Measured {
  const latenciesMs = slices.map((slice) => slice.latenciesMs).filter(({ length }) => length > 0);
  return {
    perSecond: median(slices.map(({ perSecond }) => perSecond)),
    p50Ms: median(latenciesMs.map((sorted) => percentile(sorted, 0.5))),
    p99Ms: median(latenciesMs.map((sorted) => percentile(sorted, 0.99))),
  };
}
