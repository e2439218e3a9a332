import type { Delivery } from "./operations.ts";

/**
 * A queue that delivers at least once: a delivery belongs to its consumer until it is acknowledged, and is
 * delivered again when the consumer dies or returns it.
 */
export class Queue {
  readonly total: number;
  readonly #waiting: Delivery[];
  readonly #timers = new Set<NodeJS.Timeout>();
  #acknowledged = 0;
  /** Called whenever a delivery becomes available. */
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

  /** Returns the next delivery; undefined if none is available. */
  take(): Delivery | undefined {
    return this.#waiting.pop();
  }

  acknowledge(): void {
    this.#acknowledged++;
  }

  /** Delivers a message again first: its consumer died. */
  redeliver(delivery: Delivery): void {
    this.#waiting.push(delivery);
    this.onAvailable();
  }

  /** Delivers a message again after a delay: its consumer could not handle it now. */
  redeliverLater(delivery: Delivery, delayMs: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.redeliver(delivery);
    }, delayMs);
    this.#timers.add(timer);
  }

  /** Ends all pending redeliveries. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.onAvailable = () => {};
  }
}
