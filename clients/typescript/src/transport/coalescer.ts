import { OncewardError } from "../errors/errors.ts";
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from "../wire/limits.ts";
import { type BatchedRequest, maxRequestBytes } from "../wire/request-size.ts";

/** Four, so that client, server and database are busy at the same time: each works on another batch. */
const MAX_BATCHES_IN_FLIGHT = 4;
/**
 * Queued calls are divided among the batches that may be sent, but not into smaller parts: each batch costs a
 * statement.
 */
const MIN_DIVIDED_ITEMS = 32;

/** A request message minus the batch's own framing. */
const MAX_BATCH_BYTES = MAX_MESSAGE_BYTES - 1024;
/**
 * With more bytes than this in flight the next batch waits, so that at most two full batches are in flight. With
 * four, a server on Node sometimes refuses a stream (ENHANCE_YOUR_CALM), with any amount of memory that it allows a connection.
 */
const MAX_BYTES_BEFORE_NEXT = MAX_BATCH_BYTES;

/** A generous bound for a trace context of 55 characters. */
const TRACEPARENT_BYTES = 64;

const { setImmediate: immediately, setTimeout: later } = globalThis;

/**
 * Calls back after the microtasks, also where there is no setImmediate. Uses the timers that existed when the client
 * was loaded: fake timers that a unit test installs later would block every call until the test advances them. Timers
 * that were fake even then are not used: calls are gathered for a few microtasks instead.
 */
const soon: (callback: () => void) => void = isFake(immediately ?? later)
  ? afterMicrotasks
  : typeof immediately === "function"
    ? immediately
    : (callback) => later(callback, 0);

/** Sinon's fake timers, which Jest and Vitest use, have a clock. */
function isFake(timer: unknown): boolean {
  return typeof timer === "function" && "clock" in timer;
}

/** Enough for calls that a caller makes after awaiting something that is there. */
const MICROTASKS = 10;

async function afterMicrotasks(callback: () => void): Promise<void> {
  for (let turn = 0; turn < MICROTASKS; turn++) await undefined;
  callback();
}

/** A call that waits for its batch's response. */
export interface Pending<Reply> {
  readonly request: BatchedRequest;
  /** The trace context of the code that made the call. */
  readonly traceparent: string | undefined;
  readonly sizeBytes: number;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: OncewardError) => void;
}

/**
 * Gathers calls that are made in one turn of the event loop, or while batches are in flight, into few batches. A single
 * call is sent at once. Order is kept within a batch, not between batches.
 */
export class Coalescer<Reply> {
  readonly #send: (batch: readonly Pending<Reply>[]) => Promise<void>;
  #queue: Pending<Reply>[] = [];
  #inFlight = 0;
  #bytesInFlight = 0;
  #flushing = false;
  #closed = false;

  /** @param send sends a batch and settles each of its calls; never rejects. */
  constructor(send: (batch: readonly Pending<Reply>[]) => Promise<void>) {
    this.#send = send;
  }

  /** Adds a call to the next batch. Rejects with the call's own OncewardError, or with CLOSED. */
  enqueue(request: BatchedRequest, traceparent?: string): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new OncewardError("CLOSED", "The client is closed."));
        return;
      }
      const sizeBytes = maxRequestBytes(request) + (traceparent === undefined ? 0 : TRACEPARENT_BYTES);
      this.#queue.push({ request, traceparent, sizeBytes, resolve, reject });
      this.#flushSoon();
    });
  }

  /** Refuses every further call; earlier calls are still answered. */
  close(): void {
    this.#closed = true;
  }

  // After the microtasks of this turn, so that calls which the caller makes in the same turn join the batch.
  #flushSoon(): void {
    if (this.#flushing || this.#queue.length === 0) return;
    if (this.#inFlight >= MAX_BATCHES_IN_FLIGHT || this.#bytesInFlight > MAX_BYTES_BEFORE_NEXT) return;
    this.#flushing = true;
    soon(() => {
      this.#flushing = false;
      const { batch, bytes } = this.#takeBatch();
      void this.#flush(batch, bytes);
      // One batch per turn: batches that are sent together are answered together, and would stay in step from then on.
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
      // The first call is sent with any size: if it is too large, the server refuses it alone.
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
