/**
 * The state of a circuit breaker.
 *
 * - closed: calls pass; consecutive failures are counted.
 * - open: calls are refused until a probe succeeds.
 *
 * Not a library's breaker: those let a call of a user probe a half-open circuit, and that call would wait for
 * Redis' time-out. Here a timer probes, and no call waits.
 */
type State = { readonly kind: "closed"; readonly failures: number } | { readonly kind: "open" };

/** Creates a circuit breaker, which is closed. */
export function createBreaker({
  maxFailures,
  pauseMs,
  probe,
  onChange,
}: {
  /** Consecutive failures that open the breaker. */
  readonly maxFailures: number;
  /** Time from opening, or from a failed probe, to the next probe. */
  readonly pauseMs: number;
  /** Returns whether the protected service works again; never rejects. */
  readonly probe: () => Promise<boolean>;
  /** Called when the breaker opens or closes. */
  readonly onChange: (open: boolean) => void;
}) {
  let state: State = { kind: "closed", failures: 0 };
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function open(): void {
    state = { kind: "open" };
    onChange(true);
    scheduleProbe();
  }

  function scheduleProbe(): void {
    if (stopped) return;
    timer = setTimeout(() => {
      void probe().then((works) => {
        if (!works) return scheduleProbe();
        state = { kind: "closed", failures: 0 };
        onChange(false);
      });
    }, pauseMs);
    timer.unref();
  }

  return {
    /** Returns whether a call may be made now. Its caller reports the outcome by `succeeded` or `failed`. */
    allows: () => state.kind === "closed",
    succeeded(): void {
      // While open, only a probe may close it: this answer belongs to a call from before.
      if (state.kind === "closed" && state.failures > 0) state = { kind: "closed", failures: 0 };
    },
    failed(): void {
      if (state.kind === "open") return;
      const failures = state.failures + 1;
      if (failures >= maxFailures) open();
      else state = { kind: "closed", failures };
    },
    /** Stops the probes. */
    stop(): void {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
