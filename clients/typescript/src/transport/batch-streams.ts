import type { OutgoingHttpHeaders } from "node:http2";
import { type BatchResponse, IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { type Batch, BatchStream } from "./batch-stream.ts";
import { connectionError } from "./connection-failures.ts";
import { timedOut } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";

/** After streams failed to reach the server, how long until they are tried again: a deployment takes less. */
const STREAMS_DISABLED_MS = 60_000;

const PATH = `/${IdempotencyService.typeName}/${IdempotencyService.method.batchStream.name}`;

/** The BatchStreams to one replica. One stream at a time takes batches. */
export class BatchStreams {
  readonly #sessions: SessionManager;
  readonly #headersOf: (authorization: string) => OutgoingHttpHeaders;
  #current: BatchStream | undefined;
  #opening: Promise<BatchStream> | undefined;
  /** The credential of the streams above. */
  #authorization: string | undefined;
  #disabledUntilMs = Number.NEGATIVE_INFINITY;

  /** @param headersOf returns the headers of a stream with a credential. */
  constructor(sessions: SessionManager, headersOf: (authorization: string) => OutgoingHttpHeaders) {
    this.#sessions = sessions;
    this.#headersOf = headersOf;
  }

  /**
   * Sends a batch on a stream. Resolves with undefined if the server, or a proxy before it, does not support
   * BatchStream; then the batch was not processed.
   *
   * @throws ConnectError, or OncewardError, as Batch itself would.
   */
  async send(request: Batch, timeoutMs: number, authorization: string): Promise<BatchResponse | undefined> {
    if (performance.now() < this.#disabledUntilMs) return undefined;
    if (authorization !== this.#authorization) this.#changeCredential(authorization);
    if (this.#current?.isOpen()) return this.#current.send(request, timeoutMs);
    const expiresAtMs = performance.now() + timeoutMs;
    const stream = await within(timeoutMs, this.#open());
    return stream.send(request, expiresAtMs - performance.now());
  }

  /** A stream has the credential with which it was opened, so batches with another one need another stream. */
  #changeCredential(authorization: string): void {
    this.#authorization = authorization;
    this.#current?.halfClose();
    this.#current = undefined;
    this.#opening = undefined;
  }

  #open(): Promise<BatchStream> {
    const authorization = this.#authorization ?? "";
    this.#opening ??= this.#sessions
      .request("POST", PATH, this.#headersOf(authorization), {})
      .then(
        (opened) => {
          const stream = new BatchStream(opened, this.#sessions, this.#disableStreams);
          if (authorization === this.#authorization) this.#current = stream;
          return stream;
        },
        (cause: unknown) => {
          throw connectionError({ authority: this.#sessions.address, spokeHttp2: false }, cause);
        },
      )
      .finally(() => {
        if (authorization === this.#authorization) this.#opening = undefined;
      });
    return this.#opening;
  }

  readonly #disableStreams = () => {
    this.#disabledUntilMs = performance.now() + STREAMS_DISABLED_MS;
  };
}

/** Rejects if the promise takes longer than `timeoutMs`. @throws ConnectError DEADLINE_EXCEEDED. */
function within<Value>(timeoutMs: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(timedOut()), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
