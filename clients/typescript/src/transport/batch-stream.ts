import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OncewardError } from "../errors/errors.ts";
import { errorFromItem } from "../errors/mapping.ts";
import {
  type BatchRequestSchema,
  type BatchResponse,
  BatchResponseSchema,
  BatchStreamRequestSchema,
  BatchStreamResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { decodeMessage, frameMessage, MessageSplitter } from "../wire/grpc-messages.ts";
import { connectionError } from "./connection-failures.ts";
import { checkStatus, notGrpc } from "./grpc-status.ts";
import { brokenError, dropListeners, type ResponseHead, timedOut } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";

/** A stream this old takes no more batches, so that a load balancer can move the next stream to another replica. */
const MAX_AGE_MS = 60_000;
/** How long a stream stays open for the next batch. An open stream keeps the process alive. */
const IDLE_MS = 1000;

/** A batch, and the trace context in which it is sent. */
export type Batch = MessageInitShape<typeof BatchRequestSchema> & { readonly traceparent?: string };

interface PendingBatch {
  readonly resolve: (response: BatchResponse | undefined) => void;
  readonly reject: (error: ConnectError | OncewardError) => void;
  readonly timer: NodeJS.Timeout;
}

/** One BatchStream: sends batches, and finds the batch of each answer. */
export class BatchStream {
  readonly #stream: ClientHttp2Stream;
  readonly #session: ClientHttp2Session | undefined;
  readonly #sessions: SessionManager;
  /** Called when streams don't reach the server. */
  readonly #disableStreams: () => void;
  readonly #messages = new MessageSplitter();
  readonly #pending = new Map<number, PendingBatch>();
  readonly #openedAtMs = performance.now();
  readonly #idleTimer: NodeJS.Timeout;
  #lastId = 0;
  #headers: ResponseHead["headers"] | undefined;
  #trailers: ResponseHead["trailers"] | undefined;
  /** Whether the server answered with a status alone, before it took any batch. */
  #refused = false;
  /** Whether this side has ended the stream: no further batches, but answers may still arrive. */
  #halfClosed = false;

  constructor(stream: ClientHttp2Stream, sessions: SessionManager, disableStreams: () => void) {
    this.#stream = stream;
    this.#session = stream.session as ClientHttp2Session | undefined;
    this.#sessions = sessions;
    this.#disableStreams = disableStreams;
    this.#idleTimer = setTimeout(this.#onIdle, IDLE_MS).unref();
    const broken = brokenError(stream, sessions.address);
    stream.on("response", (headers, flags) => {
      const error = notGrpc(headers);
      if (error !== undefined) {
        this.#refuse(error, headers[":status"] ?? 0);
        return;
      }
      this.#headers = headers;
      this.#refused = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      if (this.#refused) this.#trailers = {};
    });
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("trailers", (trailers) => {
      this.#trailers = trailers;
    });
    // The server ended the stream, or it was cut off. It closes once this side has ended, too.
    stream.on("end", this.halfClose);
    stream.on("error", (cause) => this.#fail(broken(cause)));
    stream.on("close", () => {
      this.#end(broken);
      clearTimeout(this.#idleTimer);
      this.#session?.off("goaway", this.halfClose);
      dropListeners(stream);
    });
    // After a GOAWAY the server answers the batches in flight, and waits for this side to end.
    this.#session?.once("goaway", this.halfClose);
  }

  /** Returns whether the stream takes another batch. */
  isOpen(): boolean {
    if (performance.now() - this.#openedAtMs > MAX_AGE_MS) this.halfClose();
    return !this.#halfClosed && !this.#stream.closed && !this.#stream.destroyed;
  }

  send({ items = [], traceparent = "" }: Batch, timeoutMs: number): Promise<BatchResponse | undefined> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen()) throw connectionError({ authority: this.#sessions.address, spokeHttp2: true });
      const id = ++this.#lastId;
      const timeout = durationFromMs(Math.max(0, Math.ceil(timeoutMs)));
      const frame = frameMessage(BatchStreamRequestSchema, { items, id, timeout, traceparent });
      const timer = setTimeout(() => this.#expire(id), timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      this.#stream.write(frame);
      this.#idleTimer.refresh();
    });
  }

  /** Handles an answer that is not from a gRPC service. Its body is not read. */
  #refuse(error: ConnectError, httpStatus: number): void {
    // A proxy that refuses streams may accept single calls. A balancer without replicas (5xx) refuses both.
    if (httpStatus < 500) this.#disableStreams();
    this.#fail(new ConnectError(error.rawMessage, Code.Unavailable));
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #read(chunk: Buffer): void {
    if (this.#headers === undefined) return;
    this.#sessions.notifyResponseByteRead(this.#stream);
    try {
      this.#messages.push(chunk);
      for (let message = this.#messages.next(); message !== undefined; message = this.#messages.next())
        this.#resolve(message);
    } catch (error) {
      this.#fail(ConnectError.from(error));
      this.#stream.close();
    }
  }

  #resolve(message: Buffer): void {
    const { id, items, error } = decodeMessage(BatchStreamResponseSchema, message);
    const pending = this.#take(id);
    // The answer of a batch that has already timed out.
    if (pending === undefined) return;
    if (error === undefined) pending.resolve(create(BatchResponseSchema, { items }));
    else pending.reject(errorFromItem(error));
  }

  #expire(id: number): void {
    const pending = this.#take(id);
    pending?.reject(timedOut());
    // Without response headers, a proxy may be buffering the stream until it ends.
    if (this.#headers === undefined) this.#disableStreams();
    this.halfClose();
  }

  #take(id: number): PendingBatch | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    return pending;
  }

  /** Ends this side of the stream; the answers to batches in flight still arrive. */
  readonly halfClose = () => {
    if (this.#halfClosed) return;
    this.#halfClosed = true;
    this.#stream.end();
    this.#idleTimer.refresh();
  };

  readonly #onIdle = () => {
    if (this.#pending.size > 0) this.#idleTimer.refresh();
    else if (this.#halfClosed) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.halfClose();
  };

  /** Rejects every batch that has no answer: the stream has closed. */
  #end(broken: () => ConnectError | OncewardError): void {
    this.#halfClosed = true;
    if (this.#pending.size === 0) return;
    const error = this.#statusError() ?? broken();
    if (this.#refused && error.code === Code.Unimplemented) this.#resolveUnsupported();
    else this.#fail(error);
  }

  #statusError(): ConnectError | undefined {
    if (this.#headers === undefined || this.#trailers === undefined) return undefined;
    try {
      checkStatus({ headers: this.#headers, trailers: this.#trailers });
    } catch (error) {
      return ConnectError.from(error);
    }
    return undefined;
  }

  /** Hands the batches back to the caller: the server does not know BatchStream. */
  #resolveUnsupported(): void {
    this.#disableStreams();
    for (const id of [...this.#pending.keys()]) this.#take(id)?.resolve(undefined);
  }

  #fail(error: ConnectError | OncewardError): void {
    this.#halfClosed = true;
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }
}
