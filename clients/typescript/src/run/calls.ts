import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import { type Api, ATTEMPT_TIMEOUT_MS, type Reply, type Responses, sendBatch } from "../transport/batch-sender.ts";
import { Coalescer } from "../transport/coalescer.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { OncewardError } from "../errors/errors.ts";
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
import type { BatchedRequest } from "../wire/request-size.ts";

/** A message by the fields that are set, as it is written down. */
type Init<Schema extends DescMessage> = Exclude<MessageInitShape<Schema>, Message>;

/** A claim's request without its wait, which no batch takes. */
export type ClaimInit = Omit<Init<typeof ClaimRequestSchema>, "wait">;

/**
 * The service's calls, one function each; what is called concurrently travels together, in Batch RPCs, by itself.
 *
 * Each is one attempt of at most 5 s: after an error that is worth retrying, repeat it with the same claim id or fencing
 * token. Each throws OncewardError, with the reasons that `idempotency.proto` lists for its RPC.
 */
export class Calls {
  readonly #api: Api;
  readonly #coalescer: Coalescer<Reply>;
  readonly #closing = new AbortController();

  constructor(api: Api) {
    this.#api = api;
    this.#coalescer = new Coalescer((batch) => sendBatch(api, batch));
  }

  /** Asks for the right to perform the side effect of a key. */
  claim(value: ClaimInit): Promise<ClaimResponse> {
    return this.#ask({ case: "claim", value });
  }

  /** The same, held until the record resolves, at most `waitMs` (60 s): an RPC of its own, which holds up nobody else. */
  async claimWaiting(value: ClaimInit, waitMs: number): Promise<ClaimResponse> {
    const signal = this.closing;
    try {
      const wait = {
        seconds: BigInt(Math.floor(waitMs / 1000)),
        nanos: Math.floor(waitMs % 1000) * 1_000_000,
      };
      return await this.#api.claim({ ...value, wait }, { timeoutMs: waitMs + ATTEMPT_TIMEOUT_MS, signal });
    } catch (cause) {
      throw signal.aborted ? signal.reason : errorFromCall(cause);
    }
  }

  /** Stores the outcome of a claim. */
  complete(value: Init<typeof CompleteRequestSchema>): Promise<CompleteResponse> {
    return this.#ask({ case: "complete", value });
  }

  /** Gives a claim up unfinished. */
  release(value: Init<typeof ReleaseRequestSchema>): Promise<ReleaseResponse> {
    return this.#ask({ case: "release", value });
  }

  /** Prolongs a claim's lease, and saves a checkpoint if one is given. */
  extendLease(value: Init<typeof ExtendLeaseRequestSchema>): Promise<ExtendLeaseResponse> {
    return this.#ask({ case: "extendLease", value });
  }

  /** Reads a key's record without touching it. */
  lookup(value: Init<typeof LookupRequestSchema>): Promise<LookupResponse> {
    return this.#ask({ case: "lookup", value });
  }

  /** Aborts when waits are to end, with an OncewardError CLOSED as its reason. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Ends the calls that wait for another holder, and refuses new ones, with CLOSED. Other calls are still made. */
  endWaits(): void {
    this.#closing.abort(new OncewardError("CLOSED", "The client is closed."));
  }

  /** From now on every call is refused with CLOSED; those made before are still answered. */
  close(): void {
    this.#coalescer.close();
  }

  /** The coalescer's own promise: a call is settled with a response of its kind, or fails (`sendBatch`). */
  #ask<Kind extends keyof Responses>(
    request: BatchedRequest & { readonly case: Kind },
  ): Promise<Responses[Kind]> {
    return this.#coalescer.ask(request) as Promise<Responses[Kind]>;
  }
}
