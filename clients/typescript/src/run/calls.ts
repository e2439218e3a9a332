import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { OncewardError } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import type {
  ClaimRequestSchema,
  ClaimResponse,
  CompleteRequestSchema,
  CompleteResponse,
  ExtendLeaseRequestSchema,
  ExtendLeaseResponse,
  LookupRequestSchema,
  LookupResponse,
  ReleaseRequestSchema,
  ReleaseResponse,
} from "../gen/onceward/v1/idempotency_pb.ts";
import {
  ATTEMPT_TIMEOUT_MS,
  callAlone,
  type Reply,
  type Responses,
  sendBatch,
  traceOptions,
} from "../transport/batch-sender.ts";
import { Coalescer } from "../transport/coalescer.ts";
import type { Api } from "../transport/unary-client.ts";
import type { BatchedRequest } from "../wire/request-size.ts";

/** Each holds a request of at most about 1 KB, so that an outage keeps at most some 10 MB of them. */
const MAX_BACKGROUND = 10_000;

/** A message's fields, as an object literal. */
type Init<Schema extends DescMessage> = Exclude<MessageInitShape<Schema>, Message>;

/** What a held claim does while its client closes. Both get an OncewardError CLOSED. */
export interface ClosingListener {
  /** The function has to end now, while its outcome can still be stored. */
  readonly functionsEnd: (reason: OncewardError) => void;
  /** No further call is made, so that the lease will expire. */
  readonly closed: (reason: OncewardError) => void;
}

/** A ClaimRequest's fields without `wait`, which batches don't allow. */
export type ClaimInit = Omit<Init<typeof ClaimRequestSchema>, "wait">;

/**
 * The service's calls, one method each. Concurrent calls are gathered into Batch RPCs automatically, except by the
 * client of `@onceward/client/web`, which makes one RPC per call.
 *
 * Each method makes one attempt of at most 5 s: after a retryable error, repeat it with the same claim id or fencing
 * token. Each throws OncewardError, with the reasons that `idempotency.proto` lists for its RPC.
 */
export class Calls {
  readonly #api: Api;
  /** Undefined where calls may not share a request. */
  readonly #coalescer: Coalescer<Reply> | undefined;
  #closed = false;
  readonly #closing = new AbortController();
  /** Each ends one call of `orEnd`. A set, because listeners of a signal are slow to remove among thousands. */
  readonly #ends = new Set<(reason: OncewardError) => void>();
  /** Each learns of one step of closing. */
  readonly #held = new Set<ClosingListener>();
  readonly #background = new Set<Promise<void>>();
  readonly #traceparent: (() => string | undefined) | undefined;

  /**
   * @param traceparent returns the trace context of the code that makes a call.
   * @param gathersCalls whether concurrent calls may share a request (`Connection`).
   */
  constructor(api: Api, traceparent?: () => string | undefined, gathersCalls = true) {
    this.#api = api;
    this.#traceparent = traceparent;
    this.#coalescer = gathersCalls ? new Coalescer((batch) => sendBatch(api, batch)) : undefined;
  }

  /** Claims the right to perform the side effect of a key. */
  claim(value: ClaimInit): Promise<ClaimResponse> {
    return this.#enqueue({ case: "claim", value });
  }

  /**
   * Claims, and waits up to `waitMs` for the record to resolve. An RPC of its own, so that no batch waits.
   *
   * @param signal ends the call with its reason, at once. The claim may still be granted.
   */
  claimWaiting(value: ClaimInit, waitMs: number, signal?: AbortSignal): Promise<ClaimResponse> {
    const cancelling = new AbortController();
    const call = this.orEnd(this.#claimWaiting(value, waitMs, cancelling.signal), signal);
    call.catch(() => cancelling.abort());
    return call;
  }

  async #claimWaiting(value: ClaimInit, waitMs: number, signal: AbortSignal): Promise<ClaimResponse> {
    this.closing.throwIfAborted();
    try {
      const wait = {
        seconds: BigInt(Math.floor(waitMs / 1000)),
        nanos: Math.floor(waitMs % 1000) * 1_000_000,
      };
      const timeoutMs = waitMs + ATTEMPT_TIMEOUT_MS;
      const trace = traceOptions(this.#traceparent?.());
      return await this.#api.claim({ ...value, wait }, { timeoutMs, signal, ...trace });
    } catch (cause) {
      throw errorFromCall(cause);
    }
  }

  /** Stores the outcome of a claim. */
  complete(value: Init<typeof CompleteRequestSchema>): Promise<CompleteResponse> {
    return this.#enqueue({ case: "complete", value });
  }

  /** Releases a claim without an outcome. */
  release(value: Init<typeof ReleaseRequestSchema>): Promise<ReleaseResponse> {
    return this.#enqueue({ case: "release", value });
  }

  /**
   * Prolongs a claim's lease, and saves the checkpoint if there is one.
   *
   * @param timeoutMs a shorter time than usual sends the call alone: the heartbeat of a short lease has no time to wait for batches on
   *   a connection that is silent.
   */
  extendLease(
    value: Init<typeof ExtendLeaseRequestSchema>,
    timeoutMs = ATTEMPT_TIMEOUT_MS,
  ): Promise<ExtendLeaseResponse> {
    return this.#enqueue({ case: "extendLease", value }, timeoutMs);
  }

  /** Reads a key's record without changing it. */
  lookup(value: Init<typeof LookupRequestSchema>): Promise<LookupResponse> {
    return this.#enqueue({ case: "lookup", value });
  }

  /** Aborts when the client starts to close, with an OncewardError CLOSED as its reason. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Ends claims that wait, and refuses new ones, with CLOSED. Other calls are still made. */
  endWaits(): void {
    const closed = closedError();
    this.#closing.abort(closed);
    for (const end of this.#ends) end(closed);
  }

  /** Settles as the call does; rejects as soon as the client closes or the signal aborts. The call itself continues. */
  orEnd<Response>(call: Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal?.reason);
      const stopListening = () => {
        this.#ends.delete(reject);
        signal?.removeEventListener("abort", abort);
      };
      this.#ends.add(reject);
      signal?.addEventListener("abort", abort);
      if (signal?.aborted) abort();
      call.then(resolve, reject).finally(stopListening);
    });
  }

  /**
   * Starts work that a closing client waits for, and that never rejects; skips it if as much is in progress as is kept.
   */
  inBackground(start: () => Promise<void>): void {
    if (this.#background.size >= MAX_BACKGROUND) return;
    const work = start();
    this.#background.add(work);
    void work.then(() => this.#background.delete(work));
  }

  /** The work of `inBackground` that has not ended. */
  get background(): Iterable<Promise<void>> {
    return this.#background;
  }

  /** Notes a listener of closing. Returns the function that removes it. */
  onClosing(listener: ClosingListener): () => void {
    this.#held.add(listener);
    return () => this.#held.delete(listener);
  }

  /** Asks running functions to end, by aborting the signals of their claims. Calls are still made. */
  endFunctions(): void {
    for (const { functionsEnd } of this.#held) functionsEnd(closedError());
  }

  /** Refuses every further call with CLOSED; earlier calls are still answered. Ends the leases that are held. */
  close(): void {
    this.#closed = true;
    this.#coalescer?.close();
    for (const { closed } of this.#held) closed(closedError());
  }

  /** The cast is safe: `sendBatch` resolves a call with a response of the call's kind, or rejects it. */
  async #enqueue<Kind extends keyof Responses>(
    request: BatchedRequest & { readonly case: Kind },
    timeoutMs = ATTEMPT_TIMEOUT_MS,
  ): Promise<Responses[Kind]> {
    const traceparent = this.#traceparent?.();
    if (this.#closed) throw new OncewardError("CLOSED", "The client is closed.");
    const coalescer = timeoutMs < ATTEMPT_TIMEOUT_MS ? undefined : this.#coalescer;
    const reply =
      coalescer?.enqueue(request, traceparent) ?? callAlone(this.#api, request, traceparent, timeoutMs);
    return (await reply) as Responses[Kind];
  }
}

/** Returns the error of a call that a closed client does not make. */
export function closedError(): OncewardError {
  return new OncewardError("CLOSED", "The client is closed.");
}

/** Returns a reply's timestamp, to the millisecond; an Invalid Date if the service did not send one. */
export function dateOf(timestamp: Timestamp | undefined): Date {
  return timestamp === undefined ? new Date(Number.NaN) : timestampDate(timestamp);
}
