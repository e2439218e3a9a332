import { setTimeout as pause } from "node:timers/promises";

/** How much a probe may send and receive. */
export interface Bounds {
  readonly requests: number;
  /** Bytes of bodies, sent and received. */
  readonly bytes: number;
  readonly seconds: number;
  /** Requests in a second; requests that are sent together wait until all of them may be. */
  readonly perSecond: number;
  /** How long one request may take. */
  readonly requestMs: number;
}

/** The bounds if the user names none: about three times what all checks need. */
export const DEFAULT_BOUNDS: Bounds = {
  requests: 1000,
  bytes: 16 * 1024 * 1024,
  seconds: 180,
  perSecond: 100,
  requestMs: 10_000,
};

/** A bound of the probe is reached: nothing more is sent. */
export class BoundReached extends Error {
  override readonly name = "BoundReached";
}

/** Counts what a probe sends and receives, and delays requests that come too fast. */
export class Budget {
  readonly bounds: Bounds;
  readonly #endsAtMs: number;
  #requests = 0;
  #bytes = 0;
  /** When the next request may be sent. */
  #nextAtMs = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.#endsAtMs = performance.now() + bounds.seconds * 1000;
  }

  /** Requests that were sent. */
  get requests(): number {
    return this.#requests;
  }

  /** Resolves when so many requests may be sent at once. @throws BoundReached */
  async request(count: number): Promise<void> {
    const { requests, seconds, perSecond } = this.bounds;
    if (this.#requests + count > requests) throw new BoundReached(`more than ${requests} requests`);
    this.#requests += count;
    const startMs = Math.max(performance.now(), this.#nextAtMs);
    // A second's requests may come at once, as the pace counts over a second.
    this.#nextAtMs = startMs + (count * 1000) / perSecond;
    if (startMs > this.#endsAtMs) throw new BoundReached(`more than ${seconds} s`);
    await this.wait(startMs - performance.now());
  }

  /** Counts bytes of a body. @throws BoundReached */
  transfer(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.bounds.bytes) throw new BoundReached(`more than ${this.bounds.bytes} bytes`);
  }

  /** Waits. @throws BoundReached if that would take longer than the probe may. */
  async wait(ms: number): Promise<void> {
    if (performance.now() + ms > this.#endsAtMs) throw new BoundReached(`more than ${this.bounds.seconds} s`);
    if (ms > 0) await pause(ms);
  }
}
