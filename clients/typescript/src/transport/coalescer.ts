import { OncewardError } from "../errors/errors.ts";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../wire/limits.ts";
import { type BatchedRequest, maxRequestBytes } from "../wire/request-size.ts";

/** While one batch is read by the server, others are at the database or being gathered, and all sides are busy. */
const MAX_BATCHES_IN_FLIGHT = 4;
/** What is queued is divided among the batches that may leave, but into no smaller parts: each costs a statement. */
const MIN_DIVIDED_ITEMS = 32;

/** The batch's own framing. */
const MAX_BATCH_BYTES = MAX_MESSAGE_BYTES - 1024;
/**
 * With more than this in flight the next batch waits, so that at most two are full: with four, a server on Node refuses a
 * stream now and then (ENHANCE_YOUR_CALM), whatever memory it allows a connection.
 */
const MAX_BYTES_BEFORE_NEXT = MAX_BATCH_BYTES;

const { setImmediate: immediately, setTimeout: later } = globalThis;
/**
 * Calls back after the microtasks, also where there is no setImmediate. The timers are those that were there when the client
 * was loaded: a unit test's fake ones, installed later, would hold back every call until the test moves them.
 */
const soon: (callback: () => void) => void =
  typeof immediately === "function" ? immediately : (callback) => later(callback, 0);

/** A call that waits for its batch. */
export interface Pending<Reply> {
  readonly request: BatchedRequest;
  readonly sizeBytes: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: OncewardError) => void;
}

/**
 * Gathers the calls that are made in one turn of the event loop, or while others are in flight, into few batches. A
 * lone call waits for nobody. Order is kept within a batch, not between batches.
 */
export class Coalescer<Reply> {
  readonly #send: (batch: readonly Pending<Reply>[]) => Promise<void>;
  #queue: Pending<Reply>[] = [];
  #inFlight = 0;
  #bytesInFlight = 0;
  #flushing = false;
  #closed = false;

  /** @param send settles each call of the batch; never rejects. */
  constructor(send: (batch: readonly Pending<Reply>[]) => Promise<void>) {
    this.#send = send;
  }

  /** @throws OncewardError as the call's own would be, or CLOSED. */
  enqueue(request: BatchedRequest): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new OncewardError("CLOSED", "The client is closed."));
        return;
      }
      this.#queue.push({ request, sizeBytes: maxRequestBytes(request), resolve, reject });
      this.#flushSoon();
    });
  }

  /** From now on every call is refused; those made before are still answered. */
  close(): void {
    this.#closed = true;
  }

  // After the microtasks of this turn: whatever the caller's own loop starts beside this call comes along.
  #flushSoon(): void {
    if (this.#flushing || this.#queue.length === 0) return;
    if (this.#inFlight >= MAX_BATCHES_IN_FLIGHT || this.#bytesInFlight > MAX_BYTES_BEFORE_NEXT) return;
    this.#flushing = true;
    soon(() => {
      this.#flushing = false;
      const { batch, bytes } = this.#takeBatch();
      void this.#flush(batch, bytes);
      // One a turn: batches that are sent together are read together, answered together, and so never part again.
      this.#flushSoon();
    });
  }

  async #flush(batch: readonly Pending<Reply>[], bytes: number): Promise<void> {
    this.#inFlight++;
    this.#bytesInFlight += bytes;
    await this.#send(batch);
    this.#inFlight--;
    this.#bytesInFlight -= bytes;
    this.#flushSoon();
  }

  #takeBatch(): { readonly batch: readonly Pending<Reply>[]; readonly bytes: number } {
    const free = MAX_BATCHES_IN_FLIGHT - this.#inFlight;
    const parts = Math.max(1, Math.min(free, Math.floor(this.#queue.length / MIN_DIVIDED_ITEMS)));
    const maxItems = Math.min(Math.ceil(this.#queue.length / parts), MAX_BATCH_ITEMS);
    let items = 0;
    let bytes = 0;
    for (const { sizeBytes } of this.#queue) {
      // The first one goes whatever its size: alone, it is the server's to refuse.
      if (items > 0 && (items === maxItems || bytes + sizeBytes > MAX_BATCH_BYTES)) break;
      items++;
      bytes += sizeBytes;
    }
    if (items === this.#queue.length) {
      const batch = this.#queue;
      this.#queue = [];
      return { batch, bytes };
    }
    return { batch: this.#queue.splice(0, items), bytes };
  }
}
