/**
 * Keeps calls away from something that fails, and lets one through from time to time to see whether it is back.
 *
 * - closed: calls go through; failures in a row are counted.
 * - open: calls are refused until the pause is over.
 * - probing: one call is out to see; the others are refused until it answers.
 */
type State =
  | { readonly kind: "closed"; readonly failures: number }
  | { readonly kind: "open"; readonly untilMs: number }
  | { readonly kind: "probing" };

/** @see State */
export interface Breaker {
  /** Whether a call may be made now; whoever is told so must report how it went. */
  allows(): boolean;
  succeeded(): void;
  failed(): void;
  /** Whether calls are being refused. */
  isOpen(): boolean;
}

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly maxFailures: number;
  /** From opening, or from a probe that failed, to the next probe. */
  readonly pauseMs: number;
}

/** A closed breaker. */
export function createBreaker({ maxFailures, pauseMs }: BreakerOptions): Breaker {
  let state: State = { kind: "closed", failures: 0 };
  return {
    allows() {
      switch (state.kind) {
        case "closed":
          return true;
        case "probing":
          return false;
        case "open":
          if (performance.now() < state.untilMs) return false;
          state = { kind: "probing" };
          return true;
      }
    },
    succeeded() {
      // An answer that was under way when it opened says nothing about now: only the probe's does.
      if (state.kind !== "open") state = { kind: "closed", failures: 0 };
    },
    failed() {
      const failures = state.kind === "closed" ? state.failures + 1 : maxFailures;
      state =
        failures >= maxFailures
          ? { kind: "open", untilMs: performance.now() + pauseMs }
          : { kind: "closed", failures };
    },
    isOpen: () => state.kind !== "closed",
  };
}
