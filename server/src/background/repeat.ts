/** Work that a replica does again and again, in the background. */
export interface Repeating {
  start(): void;
  /** Resolves once nothing of it runs any more. */
  stop(): Promise<void>;
}

export interface RepeatingOptions {
  /** Between the end of one turn and the next, ±20 %, so that replicas don't march in step. */
  readonly intervalMs: number;
  /** Before the first turn. Unset: as between two. */
  readonly firstDelayMs?: number;
  /** The delay doubles with each turn in a row that fails after another, up to this. Unset: it stays `intervalMs`. */
  readonly maxBackoffMs?: number;
  /** One turn; it never overlaps with the next. If it resolves to true, there is more to do: the next comes soon. */
  readonly work: () => Promise<unknown>;
  /** Told why a turn failed; the next one comes all the same. */
  readonly onFailed: (error: unknown) => void;
}

/** Between two turns of work that is not done: claims go first. */
const PAUSE_MS = 5;

/** @see Repeating */
export function createRepeating(options: RepeatingOptions): Repeating {
  const { intervalMs, firstDelayMs, maxBackoffMs = intervalMs, work, onFailed } = options;
  let stopping = false;
  /** Turns that failed since the last one that did not. */
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  /** A turn that fails once is tried again after the interval: another replica was in its way. */
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

  return {
    start: () => schedule(firstDelayMs ?? delayMs()),
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await running;
    },
  };
}
