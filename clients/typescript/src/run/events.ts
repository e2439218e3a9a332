import type { Reason } from "../errors/errors.ts";

/**
 * What happened to a run, as `onEvent` is told: for counting and logging. Never a value, a key or a fingerprint.
 *
 * How a run began:
 * - `claimed`: the function is about to run, under this attempt's claim.
 * - `waiting`: somebody else holds the claim, and the run waits for the outcome.
 * - `unguarded`: the service could not be asked, and the function is about to run all the same (`onUnavailable`). The
 *   last event of its run.
 * - `timestamp-key`: the key looks like a moment, so that each delivery would have another one.
 *
 * How it ended, one of them for each other run:
 * - `duplicate-skipped`: it was done before, and the function did not run. `outcome` is what was stored; `lost` where
 *   nothing is there any more.
 * - `not-run`: nothing is known to be done, and the function did not run.
 * - `completed`: the function ran, and its value is stored.
 * - `failed`: it threw for good, and its error is stored.
 * - `released`: it threw, and the claim is released.
 * - `not-released`: it threw, and the claim could not be released: a repeat runs once the lease has run out, or somebody
 *   else has taken over (`CLAIM_SUPERSEDED`).
 * - `not-stored`: it ran, and the outcome could not be stored as it was.
 * - `abandoned`: an HTTP handler had not answered for `abandonAfterMs` after its client had left. The claim is neither
 *   completed nor released: its lease runs out, and the namespace's policy decides.
 *
 * In between:
 * - `lease-lost`: somebody else may begin while the function still runs.
 */
export type OncewardEvent = { readonly namespace: string } & (
  | {
      readonly type: "claimed" | "completed" | "failed" | "released" | "abandoned";
      /** 1 for the key's first claim, one more for each that took over. */
      readonly attempt: number;
    }
  | {
      readonly type: "lease-lost" | "not-stored" | "not-released";
      readonly attempt: number;
      readonly reason: Reason;
    }
  | { readonly type: "not-run" | "unguarded"; readonly reason: Reason }
  | { readonly type: "duplicate-skipped"; readonly outcome: "success" | "failure" | "lost" }
  | { readonly type: "waiting" | "timestamp-key" }
);

/** The facts of a span: of `namespace`, `outcome` (an event's type), `attempt`, `reason`, by names that begin "onceward.". */
export type SpanFacts = Readonly<Record<`onceward.${string}`, string | number>>;

/**
 * Does a part of a run's work within a span: `run` the whole of it, `claim` until the function may run, waits included, and
 * `complete` until its outcome is stored. Resolves and rejects as the work does. See `@onceward/client/otel`.
 */
export type Trace = <T>(
  name: "run" | "claim" | "complete",
  facts: SpanFacts,
  work: (add: (facts: SpanFacts) => void) => Promise<T>,
) => Promise<T>;

/** Who is told of what runs do. */
export interface Observers {
  /** Told of every event as it happens. What it throws becomes a warning. */
  readonly onEvent?: ((event: OncewardEvent) => void) | undefined;
  /** Spans; `tracing(tracer)` of `@onceward/client/otel` makes OpenTelemetry's. */
  readonly trace?: Trace | undefined;
}
