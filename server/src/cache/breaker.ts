/**
 * Keeps calls away from something that fails, and tries it from time to time to see whether it is back. No call ever
 * pays for a try.
 *
 * - closed: calls go through; failures in a row are counted.
 * - open: calls are refused until a try succeeds.
 */
type State = { readonly kind: "closed"; readonly failures: number } | { readonly kind: "open" };

/** @see State */
export interface Breaker {
  /** Whether a call may be made now; whoever makes it reports how it went. */
  allows(): boolean;
  succeeded(): void;
  failed(): void;
  /** Ends the tries. */
  stop(): void;
}

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly maxFailures: number;
  /** From opening, or from a try that failed, to the next try. */
  readonly pauseMs: number;
  /** Sees whether it is back; never rejects. */
  readonly tryOut: () => Promise<boolean>;
  /** Told each time it opens or closes. */
  readonly onChange: (open: boolean) => void;
}

/** A closed breaker. */
export function createBreaker({ maxFailures, pauseMs, tryOut, onChange }: BreakerOptions): Breaker {
  let state: State = { kind: "closed", failures: 0 };
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function open(): void {
    state = { kind: "open" };
    onChange(true);
    scheduleTry();
  }

  function scheduleTry(): void {
    if (stopped) return;
    timer = setTimeout(() => {
      void tryOut().then((works) => {
        if (!works) return scheduleTry();
        state = { kind: "closed", failures: 0 };
        onChange(false);
      });
    }, pauseMs);
    timer.unref();
  }

  return {
    allows: () => state.kind === "closed",
    succeeded() {
      // An answer that was under way when it opened says nothing about now: only the try's does.
      if (state.kind === "closed" && state.failures > 0) state = { kind: "closed", failures: 0 };
    },
    failed() {
      if (state.kind === "open") return;
      const failures = state.failures + 1;
      if (failures >= maxFailures) open();
      else state = { kind: "closed", failures };
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
