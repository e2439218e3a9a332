/**
 * The service's clock. It does not move until a test moves it: leases and retentions expire exactly then.
 *
 * Only records follow it. The client's own waiting, heartbeats and retries take real time.
 */
export class TestingClock {
  #nowMs: number;
  readonly #onMoved: () => void;

  /** @internal */
  constructor(startMs: number, onMoved: () => void) {
    this.#nowMs = startMs;
    this.#onMoved = onMoved;
  }

  /** The clock's time, in milliseconds since the Unix epoch. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Advances the clock at once. Calls that wait for a claim whose lease has then expired are answered.
   *
   * @throws RangeError for anything but a whole number of milliseconds, 0 or more: time does not go back.
   */
  advance(ms: number): void {
    if (!Number.isSafeInteger(ms) || ms < 0) {
      throw new RangeError(`A clock is advanced by whole milliseconds, 0 or more, not by ${ms}.`);
    }
    this.#nowMs += ms;
    this.#onMoved();
  }

  /** Advances the clock to a time, such as a record's `expires_at`. @throws RangeError if that time has passed. */
  advanceTo(moment: Date): void {
    this.advance(moment.getTime() - this.#nowMs);
  }
}
