/**
 * The service's clock, which stands still until a test moves it: leases and retentions run out exactly then.
 *
 * Only records follow it. What the client does by itself (waiting, heartbeats, retries) takes real time, as ever.
 */
export class TestingClock {
  #nowMs: number;
  readonly #onMoved: () => void;

  /** @internal */
  constructor(startMs: number, onMoved: () => void) {
    this.#nowMs = startMs;
    this.#onMoved = onMoved;
  }

  /** The moment it shows, in milliseconds since the Unix epoch. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Lets so much time pass at once. Whoever waits for a claim whose lease has run out by then is answered.
   *
   * @throws RangeError for what is not a whole number of milliseconds, 0 or more: time does not go back.
   */
  advance(ms: number): void {
    if (!Number.isSafeInteger(ms) || ms < 0) {
      throw new RangeError(`A clock is advanced by whole milliseconds, 0 or more, not by ${ms}.`);
    }
    this.#nowMs += ms;
    this.#onMoved();
  }

  /** Lets time pass until a moment, such as a record's `expires_at`. @throws RangeError if that has gone by. */
  advanceTo(moment: Date): void {
    this.advance(moment.getTime() - this.#nowMs);
  }
}
