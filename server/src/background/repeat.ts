/** Work that a replica does again and again, in the background. */
export interface Repeating {
  start(): void;
  /** Resolves once nothing of it runs any more. */
  stop(): Promise<void>;
}

export interface RepeatingOptions {
  /** Between the end of one turn and the next, ±20 %, so that replicas don't march in step. */
  readonly intervalMs: number;
  /** One turn. It never overlaps with the next. */
  readonly work: () => Promise<void>;
  /** Told why a turn failed; the next one comes all the same. */
  readonly onFailed: (error: unknown) => void;
}

/** @see Repeating */
export function createRepeating({ intervalMs, work, onFailed }: RepeatingOptions): Repeating {
  let stopping = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  function schedule(): void {
    if (stopping) return;
    timer = setTimeout(
      () => {
        running = work().catch(onFailed).finally(schedule);
      },
      intervalMs * (0.8 + 0.4 * Math.random()),
    );
  }

  return {
    start: schedule,
    async stop() {
      stopping = true;
      clearTimeout(timer);
      await running;
    },
  };
}
