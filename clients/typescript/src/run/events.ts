import type { Reason } from "../errors/errors.ts";
import type { Resolution } from "./resolution.ts";

/**
 * An event of a run, passed to `onEvent`, for counting and logging. It never holds a value, a key or a fingerprint.
 *
 * When a run starts:
 * - `claimed`: the claim is granted, and the function is about to run.
 * - `waiting`: another holder has the claim, and the run waits for its outcome.
 * - `unguarded`: the service is unreachable (`onUnavailable`), or the guard is off (`GUARD_OFF`), and the function is
 *   about to run without a claim. The last event of its run.
 * - `timestamp-key`: the key looks like the current time, so that each delivery would have a different one.
 *
 * When it ends, exactly one of these for every other run:
 * - `duplicate-skipped`: the operation was done before, and the function did not run. `outcome` is the stored
 *   outcome; `lost` if its value is no longer stored.
 * - `not-run`: the operation is not known to be done, and the function did not run.
 * - `completed`: the function returned, and its value is stored.
 * - `failed`: the function failed permanently, and its error is stored; or it threw, and is to run at most once (`mode`).
 * - `released`: the function had no effect, and the claim is released.
 * - `not-released`: the function had no effect, and the claim could not be released: a repeat runs once the lease has
 *   expired, or another holder has taken over (`CLAIM_SUPERSEDED`).
 * - `not-stored`: the function ran, and its outcome could not be stored unchanged.
 * - `abandoned`: the function may have had its effect. The claim is neither completed nor released: its lease expires, and then
 *   the namespace's policy applies.
 *
 * In between:
 * - `resolved`: `resolve` was called. `found` is its answer; `unknown` also if it threw or was interrupted.
 * - `lease-lost`: another process may start while the function still runs.
 */
export type OncewardEvent = { readonly namespace: string } & (
  | {
      readonly type: "claimed" | "completed" | "failed" | "released" | "abandoned";
      /** 1 for the key's first claim, one more for each later one: after a release and after a takeover. */
      readonly attempt: number;
    }
  | {
      readonly type: "lease-lost" | "not-stored" | "not-released";
      readonly attempt: number;
      readonly reason: Reason;
    }
  | { readonly type: "resolved"; readonly attempt: number; readonly found: Resolution["kind"] }
  | { readonly type: "not-run" | "unguarded"; readonly reason: Reason }
  | { readonly type: "duplicate-skipped"; readonly outcome: "success" | "failure" | "lost" }
  | { readonly type: "waiting" | "timestamp-key" }
);

/**
 * The attributes of a span, with names that begin "onceward.": `namespace`, `outcome` (an event's type), `attempt`,
 * `reason`.
 */
export type SpanAttributes = Readonly<Record<`onceward.${string}`, string | number>>;

/**
 * Does a part of a run's work within a span: `run` is the whole run, `claim` lasts until the function may run, waits
 * included, and `complete` until its outcome is stored. Resolves and rejects as the work does. See
 * `@onceward/client/otel`.
 */
export interface Trace {
  <T>(
    name: "run" | "claim" | "complete",
    attributes: SpanAttributes,
    work: (add: (attributes: SpanAttributes) => void) => Promise<T>,
  ): Promise<T>;
  /**
   * Returns the active span as a W3C `traceparent`, which is sent with each call, so that the service's spans are its children;
   * undefined if no span is active.
   */
  readonly traceparent?: () => string | undefined;
}

/** The options by which a program observes runs. */
export interface ObserverOptions {
  /** Called with every event as it happens. An error that it throws becomes a warning. Default: none. */
  readonly onEvent?: ((event: OncewardEvent) => void) | undefined;
  /** Makes spans; `tracing(tracer)` of `@onceward/client/otel` makes OpenTelemetry's. Default: no spans. */
  readonly trace?: Trace | undefined;
}

type RunEvent = OncewardEvent extends infer Event
  ? Event extends OncewardEvent
    ? Omit<Event, "namespace">
    : never
  : never;

/** Characters that control a terminal, or show text in another order, but line breaks and tabs. */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * Emits a warning of the process, of the type OncewardWarning; in a browser, a line on the console. Keys and errors of others are
 * in it, and Node writes it to the terminal: characters that control one are replaced by U+FFFD.
 */
export function warn(text: string, code: string): void {
  const message = text.replace(CONTROLS, "\u{fffd}");
  if (globalThis.process?.emitWarning !== undefined) {
    process.emitWarning(message, { type: "OncewardWarning", code });
  } else {
    // biome-ignore lint/suspicious/noConsole: a browser has no other place for warnings.
    console.warn(`[${code}] OncewardWarning: ${message}`);
  }
}

/** Emits each kind of warning once per client. One is enough to look into it, and `onEvent` gets every event. */
export class Warnings {
  readonly #emitted = new Set<string>();

  warnOnce(code: string, message: string): void {
    if (this.#emitted.has(code)) return;
    this.#emitted.add(code);
    warn(message, code);
  }
}

/** Calls a hook of the program. An error that it throws, or rejects with, becomes a warning; never throws. */
export function callHook(name: string, warnings: Warnings, call: () => unknown): void {
  const fail = (error: unknown) => warnings.warnOnce("ONCEWARD_HOOK_FAILED", `${name} threw: ${error}`);
  try {
    const returned = call();
    // Not every hook's type refuses an async function, whose rejection would end the process.
    if (returned instanceof Promise) returned.catch(fail);
  } catch (error) {
    fail(error);
  }
}

/** Passes the events and spans of one run to the client's observers. */
export class Observer {
  readonly #options: ObserverOptions;
  readonly #warnings: Warnings;
  readonly #namespace: string;
  #addToRunSpan: (attributes: SpanAttributes) => void = () => {};

  constructor(options: ObserverOptions, warnings: Warnings, namespace: string) {
    this.#options = options;
    this.#warnings = warnings;
    this.#namespace = namespace;
  }

  /** Does work within a span. The outcome of the run's own span is the type of its last event. */
  span<T>(
    name: Parameters<Trace>[0],
    work: (add: (attributes: SpanAttributes) => void) => Promise<T>,
  ): Promise<T> {
    const { trace } = this.#options;
    if (trace === undefined) return work(() => {});
    return trace(name, { "onceward.namespace": this.#namespace }, (add) => {
      if (name === "run") this.#addToRunSpan = add;
      return work(add);
    });
  }

  /** Emits an event. Never throws. */
  emit(event: RunEvent): void {
    const { type, attempt, reason } = { attempt: undefined, reason: undefined, ...event };
    this.#addToRunSpan({
      "onceward.outcome": type,
      ...(attempt !== undefined && { "onceward.attempt": attempt }),
      ...(reason !== undefined && { "onceward.reason": reason }),
    });
    const { onEvent } = this.#options;
    callHook("onEvent", this.#warnings, () => onEvent?.({ ...event, namespace: this.#namespace }));
  }

  /** Emits an event, and a warning for programs that observe no events. */
  emitWithWarning(event: RunEvent, code: string, message: string): void {
    this.emit(event);
    this.#warnings.warnOnce(code, `${message} (namespace ${JSON.stringify(this.#namespace)})`);
  }
}
