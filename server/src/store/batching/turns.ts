/** Runs tasks of several queues, few at once. */
export interface Turns {
  /**
   * Calls `start` at once if fewer tasks run than may, otherwise after others have ended, in the order of the
   * requests. A turn ends when the promise that `start` returns is fulfilled; it must not be rejected.
   */
  request(start: () => Promise<void>): void;
}

/** @param width is the maximum of tasks at once. Waiting requests are bounded by the queues: each has one at most. */
export function createTurns(width: number): Turns {
  const waiting: (() => Promise<void>)[] = [];
  let running = 0;

  function startNext(): void {
    while (running < width) {
      const start = waiting.shift();
      if (start === undefined) return;
      running++;
      void start().then(() => {
        running--;
        startNext();
      });
    }
  }

  return {
    request(start) {
      waiting.push(start);
      startNext();
    },
  };
}
