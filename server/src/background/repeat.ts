/** A task that a replica repeats in the background. */
export interface Repeating {
  start(): void;
  /** Stops repeating. Resolves when the running turn, if any, has ended, and those of the stop. */
  stop(): Promise<void>;
}

/** Delay between two turns while there is more to do, so that claims run in between. */
const PAUSE_MS = 5;

/** Creates a task that repeats its work once it is started. */
export function createRepeating(options: {
  /** Delay between the end of one turn and the next, ±20 %, so that replicas do not run in step. */
  readonly intervalMs: number;
  /** Delay before the first turn. Unset: as between two turns. */
  readonly firstDelayMs?: number;
  /**
   * The delay doubles with the second and each further failure in a row, up to this. Unset: it stays
   * `intervalMs`.
   */
  readonly maxBackoffMs?: number;
  /**
   * One turn. Turns never overlap. If it resolves to true, there is more to do, and the next turn follows
   * soon.
   */
  readonly work: () => Promise<unknown>;
  /**
   * Turns that follow the last one when the task stops, each as often as it has more to do: what is left is stored. They are
   * not repeated if they fail. Unset: none.
   */
  readonly turnsAtStop?: number;
  /** Called with the error of a turn that failed. The task is repeated regardless. */
  readonly onFailed: (error: unknown) => void;
}): Repeating {
  const { intervalMs, firstDelayMs, maxBackoffMs = intervalMs, work, turnsAtStop = 0, onFailed } = options;
  let stopping = false;
  /** Failures in a row. */
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  /** A first failure does not raise the delay: most often another replica held a lock. */
  function delayMs(): number {
    const backoffMs = intervalMs * 2 ** Math.max(0, failures - 1);
    return Math.max(intervalMs, Math.min(backoffMs, maxBackoffMs)) * (0.8 + 0.4 * Math.random());
  }

  function schedule(afterMs: number): void {
    if (stopping) return;
    timer = setTimeout(() => {
      running = turn();
    }, afterMs);
  }

  async function turn(): Promise<void> {
    let more: unknown;
    try {
      more = await work();
      failures = 0;
    } catch (error) {
      failures++;
      onFailed(error);
    }
    schedule(more === true ? PAUSE_MS : delayMs());
  }

  async function workThrough(): Promise<void> {
    while ((await work()) === true);
  }

  return {
    start: () => schedule(firstDelayMs ?? delayMs()),
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await running;
      for (let left = turnsAtStop; left > 0; left--) await workThrough().catch(onFailed);
    },
  };
}
