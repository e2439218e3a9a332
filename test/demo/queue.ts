import type { Delivery } from "./operations.ts";

/**
 * A queue that delivers at least once: a delivery stays its consumer's until it is acknowledged, and comes again when the
 * consumer dies or gives it back.
 */
export class Queue {
  readonly total: number;
  readonly #waiting: Delivery[];
  readonly #timers = new Set<NodeJS.Timeout>();
  #acknowledged = 0;
  /** Called whenever there is something to take that was not there before. */
  onAvailable: () => void = () => {};

  constructor(deliveries: readonly Delivery[]) {
    this.total = deliveries.length;
    // Taken from the end.
    this.#waiting = deliveries.toReversed();
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get isDone(): boolean {
    return this.#acknowledged === this.total;
  }

  /** The next delivery; undefined if there is none for now. */
  take(): Delivery | undefined {
    return this.#waiting.pop();
  }

  acknowledge(): void {
    this.#acknowledged++;
  }

  /** Its consumer died: it is the next to be delivered. */
  redeliver(delivery: Delivery): void {
    this.#waiting.push(delivery);
    this.onAvailable();
  }

  /** Its consumer could not handle it now. */
  redeliverLater(delivery: Delivery, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.redeliver(delivery);
    }, delayMs);
    this.#timers.add(timer);
  }

  /** Nothing comes any more. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.onAvailable = () => {};
  }
}
