import type { Observers, OncewardEvent, SpanFacts, Trace } from "./events.ts";
import { warn } from "./warn.ts";

/** An event, before it is known whose it is. */
type Happening = OncewardEvent extends infer Event
  ? Event extends OncewardEvent
    ? Omit<Event, "namespace">
    : never
  : never;

/** Kinds of warnings of this process that were given before: one is enough to look into it, and `onEvent` has them all. */
export class Warnings {
  readonly #given = new Set<string>();

  give(code: string, message: string): void {
    if (this.#given.has(code)) return;
    this.#given.add(code);
    warn(message, code);
  }
}

/** Tells the client's observers of one run. */
export class Observer {
  readonly #observers: Observers;
  readonly #warnings: Warnings;
  readonly #namespace: string;
  #addToRun: (facts: SpanFacts) => void = () => {};

  constructor(observers: Observers, warnings: Warnings, namespace: string) {
    this.#observers = observers;
    this.#warnings = warnings;
    this.#namespace = namespace;
  }

  /** Work within a span; the run's own span has its last event as outcome. */
  span<T>(name: Parameters<Trace>[0], work: (add: (facts: SpanFacts) => void) => Promise<T>): Promise<T> {
    const { trace } = this.#observers;
    if (trace === undefined) return work(() => {});
    return trace(name, { "onceward.namespace": this.#namespace }, (add) => {
      if (name === "run") this.#addToRun = add;
      return work(add);
    });
  }

  /** Something happened. Never throws. */
  tell(happening: Happening): void {
    const { type, attempt, reason } = { attempt: undefined, reason: undefined, ...happening };
    this.#addToRun({
      "onceward.outcome": type,
      ...(attempt !== undefined && { "onceward.attempt": attempt }),
      ...(reason !== undefined && { "onceward.reason": reason }),
    });
    try {
      this.#observers.onEvent?.({ ...happening, namespace: this.#namespace });
    } catch (error) {
      this.#warnings.give("ONCEWARD_HOOK_FAILED", `onEvent threw: ${error}`);
    }
  }

  /** Something happened that somebody has to see, even if nobody observes. */
  alarm(happening: Happening, code: string, message: string): void {
    this.tell(happening);
    this.#warnings.give(code, `${message} (namespace ${JSON.stringify(this.#namespace)})`);
  }
}
