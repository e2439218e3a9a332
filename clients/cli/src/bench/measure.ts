import { isOncewardError } from "../failure.ts";

/** What the callers of a phase saw. */
export interface Measured {
  readonly name: string;
  readonly seconds: number;
  readonly callers: number;
  /** Operations that were answered as expected. */
  readonly done: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Operations that a quota refused, by its reason, such as QUOTA_RATE. */
  readonly refused: Readonly<Record<string, number>>;
  /** Operations that failed otherwise, by the reason of their error. */
  readonly errors: Readonly<Record<string, number>>;
  /** The processor time of this program, in processors: 1 is one whole processor. */
  readonly processors: number;
}

/** A phase: what a caller does again and again. */
export interface Phase {
  readonly name: string;
  /** Bounds the phase's operations, and so what is kept about them. */
  readonly maxOperations: number;
  /** Carries out one operation. @param index counts the phase's operations from 0. */
  readonly operate: (index: number) => Promise<void>;
}

/** Latencies are counted in steps of a twentieth: p50 and p99 are at most 5 % too high, in 400 numbers. */
const STEP = Math.log(1.05);
const STEPS = 400;
const SHORTEST_MS = 0.01;
/** A refusal without a delay is repeated at once otherwise. */
const SHORTEST_PAUSE_MS = 10;

/**
 * Lets callers repeat a phase's operation, each as soon as its last one is answered, for a time.
 *
 * @param signal ends the phase; operations in flight are awaited.
 * @throws any error of an operation that is not an OncewardError; no further operation begins.
 */
export async function measure(
  phase: Phase,
  callers: number,
  durationMs: number,
  signal: AbortSignal,
): Promise<Measured> {
  const counts = new Uint32Array(STEPS);
  const refused: Record<string, number> = {};
  const errors: Record<string, number> = {};
  let begun = 0;
  let done = 0;
  let isBroken = false;
  const startMs = performance.now();
  const endMs = startMs + durationMs;
  const processor = process.cpuUsage();
  const call = async () => {
    while (!signal.aborted && !isBroken && begun < phase.maxOperations && performance.now() < endMs) {
      const index = begun++;
      const sentMs = performance.now();
      try {
        await phase.operate(index);
        done += 1;
        const step = Math.ceil(Math.log((performance.now() - sentMs) / SHORTEST_MS) / STEP);
        const at = Math.min(Math.max(step, 0), STEPS - 1);
        counts[at] = (counts[at] ?? 0) + 1;
      } catch (error) {
        if (!isOncewardError(error)) {
          isBroken = true;
          throw error;
        }
        const into = error.reason.startsWith("QUOTA_") ? refused : errors;
        into[error.reason] = (into[error.reason] ?? 0) + 1;
        await pause(Math.max(error.retryDelayMs ?? 0, SHORTEST_PAUSE_MS), endMs, signal);
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  const seconds = (performance.now() - startMs) / 1000;
  const { user, system } = process.cpuUsage(processor);
  return {
    name: phase.name,
    seconds,
    callers,
    done,
    perSecond: done / seconds,
    p50Ms: quantile(counts, done, 0.5),
    p99Ms: quantile(counts, done, 0.99),
    refused,
    errors,
    processors: (user + system) / 1e6 / seconds,
  };
}

/** Returns the latency that a share of the operations did not exceed, in milliseconds; 0 if there are none. */
function quantile(counts: Uint32Array, total: number, share: number): number {
  let passed = 0;
  for (const [step, count] of counts.entries()) {
    passed += count;
    if (count > 0 && passed >= total * share) return SHORTEST_MS * Math.exp(step * STEP);
  }
  return 0;
}

/** Waits as long as a refusal asks for, at most until the phase ends. */
function pause(ms: number, endMs: number, signal: AbortSignal): Promise<void> {
  const boundedMs = Math.max(Math.min(ms, endMs - performance.now()), 0);
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, boundedMs);
    signal.addEventListener("abort", finish);
  });
}
