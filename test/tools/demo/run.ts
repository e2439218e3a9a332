import { Fleet } from "./fleet.ts";
import type { Ending, Guard } from "./messages.ts";
import type { Delivery, Plan } from "./operations.ts";
import type { Provider } from "./provider.ts";
import { Queue } from "./queue.ts";

const WORKERS = 8;
/** Unplanned failures are retried, up to this many in a run. */
const MAX_FAILURES = 100;
const FAILURE_DELAY_MS = 200;

/** The result of a run. */
export interface Outcome {
  readonly unique: number;
  /**
   * Messages in the queue; each was acknowledged once. A redelivery after a crash or a refusal is the same
   * message.
   */
  readonly deliveries: number;
  /** Effects at the provider. */
  readonly effects: number;
  /** Operations without an effect. */
  readonly missing: number;
  /** Deliveries that were acknowledged with the stored outcome of another. */
  readonly suppressed: number;
  /** Operations whose deliveries were not all acknowledged with the same receipt. */
  readonly disagreeing: number;
  readonly providerCalls: number;
  readonly absorbed: number;
  readonly crashes: number;
  readonly inProgress: number;
  readonly ambiguous: number;
  readonly failures: readonly string[];
  readonly durationMs: number;
}

/** The parameters of a run. */
export interface RunSetup {
  readonly plan: Plan;
  readonly provider: Provider;
  /** Undefined: without Onceward. */
  readonly guard: Guard | undefined;
  readonly onProgress: (acknowledged: number, total: number) => void;
  readonly signal: AbortSignal;
}

/** Delivers everything until all of it is acknowledged. @throws the reason of `signal`, or what broke. */
export async function deliverAll({ plan, provider, guard, onProgress, signal }: RunSetup): Promise<Outcome> {
  const startedAtMs = performance.now();
  const queue = new Queue(plan.deliveries);
  const crashes = new Map(plan.crashes);
  const tally = { suppressed: 0, inProgress: 0, ambiguous: 0, crashes: 0 };
  const failures: string[] = [];
  const receipts = new Map<string, Set<string>>();
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();

  function acknowledge({ operation }: Delivery, receipt: string): void {
    receipts.set(operation.id, (receipts.get(operation.id) ?? new Set()).add(receipt));
    queue.acknowledge();
    onProgress(queue.acknowledged, queue.total);
    if (queue.isDone) resolve();
  }

  function onEnded(delivery: Delivery, ending: Ending): void {
    switch (ending.kind) {
      case "performed":
        acknowledge(delivery, ending.receipt);
        break;
      case "replayed":
        tally.suppressed++;
        acknowledge(delivery, ending.receipt);
        break;
      case "in progress":
        tally.inProgress++;
        queue.redeliverLater(delivery, ending.retryAfterMs);
        break;
      case "ambiguous":
        tally.ambiguous++;
        queue.redeliverLater(delivery, FAILURE_DELAY_MS);
        break;
      case "failed":
        failures.push(ending.message);
        if (failures.length > MAX_FAILURES)
          reject(new Error(`too many failures, such as: ${ending.message}`));
        queue.redeliverLater(delivery, FAILURE_DELAY_MS);
        break;
    }
  }

  const fleet = new Fleet({
    size: WORKERS,
    providerUrl: provider.url,
    guard,
    queue,
    crashFor({ operation }) {
      const crash = crashes.get(operation.id);
      crashes.delete(operation.id);
      return crash;
    },
    onCrash: () => tally.crashes++,
    onEnded,
    onBroken: reject,
  });
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    await done;
  } finally {
    signal.removeEventListener("abort", onAbort);
    queue.close();
    await fleet.stop();
  }

  const { calls, absorbed, effectsByOperation } = await provider.takeCounts();
  return {
    unique: plan.operations.length,
    deliveries: plan.deliveries.length,
    effects: [...effectsByOperation.values()].reduce((sum, effects) => sum + effects, 0),
    missing: plan.operations.filter(({ id }) => !effectsByOperation.has(id)).length,
    suppressed: tally.suppressed,
    disagreeing: [...receipts.values()].filter(({ size }) => size > 1).length,
    providerCalls: calls,
    absorbed,
    crashes: tally.crashes,
    inProgress: tally.inProgress,
    ambiguous: tally.ambiguous,
    failures,
    durationMs: performance.now() - startedAtMs,
  };
}
