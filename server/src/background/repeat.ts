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
  /** One turn; it never overlaps with the next. If it resolves to true, there is more to do: the next comes soon. */
  readonly work: () => Promise<unknown>;
  /** Told why a turn failed; the next one comes all the same. */
  readonly onFailed: (error: unknown) => void;
}

/** Between two turns of work that is not done: claims go first. */
const PAUSE_MS = 5;

/** @see Repeating */
export function createRepeating({ intervalMs, firstDelayMs, work, onFailed }: RepeatingOptions): Repeating {
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const delayMs = () => intervalMs * (0.8 + 0.4 * Math.random());

  function schedule(afterMs: number): void {
    if (stopping) return;
    timer = setTimeout(() => {
      running = turn();
    }, afterMs);
  }

  async function turn(): Promise<void> {
    const more = await work().catch(onFailed);
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
