/** Runs tasks of several queues, few at once. */
export interface Turns {
  /**
   * Calls `start` in a turn: at once if a turn is free, otherwise after others have ended, in the order of the requests. A
   * turn ends when the promises of all its tasks are fulfilled; they must not be rejected.
   */
  request(start: () => Promise<void>): void;
}

/** Creates turns. Waiting requests are bounded by the queues: each has one at most. */
export function createTurns({
  width,
  tasks = 1,
}: {
  /** Maximum turns at once. */
  readonly width: number;
  /**
   * Maximum tasks of a turn, which start together. More than one: a turn also takes the requests of the rest of this turn of
   * the event loop. Unset: one.
   */
  readonly tasks?: number;
}): Turns {
  const waiting: (() => Promise<void>)[] = [];
  let running = 0;
  let isGathering = false;

  function startNext(): void {
    while (running < width && waiting.length > 0) {
      running++;
      const started = waiting.splice(0, tasks).map((start) => start());
      void Promise.all(started).then(() => {
        running--;
        startNext();
      });
    }
  }

  function gather(): void {
    if (isGathering) return;
    isGathering = true;
    setImmediate(() => {
      isGathering = false;
      startNext();
    });
  }

  return {
    request(start) {
      waiting.push(start);
      if (tasks === 1) startNext();
      else gather();
    },
  };
}
