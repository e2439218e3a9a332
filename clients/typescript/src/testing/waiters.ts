import { refusal } from "./refusal.ts";

/** Claims that wait for a record to resolve. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  get count(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves once a record may have changed, or after `timeoutMs` of real time; the caller then claims again.
   *
   * @throws OncewardError CANCELLED when `signal` aborts.
   */
  wait(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(cancelled());
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        this.#waiting.delete(wake);
      };
      const wake = () => {
        leave();
        resolve();
      };
      const abort = () => {
        leave();
        reject(cancelled());
      };
      const timer = setTimeout(wake, timeoutMs);
      signal.addEventListener("abort", abort);
      this.#waiting.add(wake);
    });
  }

  /** Wakes every waiter: a record was settled, or the clock has advanced. */
  wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function cancelled() {
  return refusal("CANCELLED", "The caller disconnected.");
}
