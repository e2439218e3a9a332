import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
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
  IdempotencyService,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { decodeMessage, frameMessage, MessageSplitter } from "../wire/grpc-messages.ts";
import { connectionError } from "./connection-failures.ts";
import { checkStatus, notGrpc } from "./grpc-status.ts";
import { brokenError, dropListeners, type ResponseHead, timedOut } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";

/** After this a batch opens another stream, so that a balancer between here and the replicas has a say in where it goes. */
const MAX_AGE_MS = 60_000;
/** So long a stream stays open for the next batch. An open one keeps the process alive. */
const IDLE_MS = 1000;
/** Where streams don't get through, this is how long until they are tried again: a deployment is over by then. */
const STREAMS_DISABLED_MS = 60_000;

const PATH = `/${IdempotencyService.typeName}/${IdempotencyService.method.batchStream.name}`;

/** The BatchStreams to one replica, of which one at a time takes batches. */
export class BatchStreams {
  readonly #sessions: SessionManager;
  readonly #headers: OutgoingHttpHeaders;
  #current: BatchStream | undefined;
  #opening: Promise<BatchStream> | undefined;
  #disabledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(sessions: SessionManager, headers: OutgoingHttpHeaders) {
    this.#sessions = sessions;
    this.#headers = headers;
  }

  /**
   * Undefined: the server, or something on the way to it, doesn't take batches on streams, and this one was not taken.
   *
   * @throws ConnectError, or OncewardError, as Batch itself would.
   */
  async send(
    request: MessageInitShape<typeof BatchRequestSchema>,
    timeoutMs: number,
  ): Promise<BatchResponse | undefined> {
    if (performance.now() < this.#disabledUntilMs) return undefined;
    if (this.#current?.isOpen()) return this.#current.send(request, timeoutMs);
    const expiresAtMs = performance.now() + timeoutMs;
    const stream = await within(timeoutMs, this.#open());
    return stream.send(request, expiresAtMs - performance.now());
  }

  #open(): Promise<BatchStream> {
    this.#opening ??= this.#sessions
      .request("POST", PATH, this.#headers, {})
      .then(
        (stream) => {
          this.#current = new BatchStream(stream, this.#sessions, this.#disableStreams);
          return this.#current;
        },
        (cause: unknown) => {
          throw connectionError({ authority: this.#sessions.authority, spokeHttp2: false }, cause);
        },
      )
      .finally(() => {
        this.#opening = undefined;
      });
    return this.#opening;
  }

  readonly #disableStreams = () => {
    this.#disabledUntilMs = performance.now() + STREAMS_DISABLED_MS;
  };
}

/** @throws ConnectError DEADLINE_EXCEEDED if it takes longer. */
function within<Value>(timeoutMs: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(timedOut()), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** A batch that has not been answered. */
interface PendingBatch {
  readonly resolve: (response: BatchResponse | undefined) => void;
  readonly reject: (error: ConnectError | OncewardError) => void;
  readonly timer: NodeJS.Timeout;
}

class BatchStream {
  readonly #stream: ClientHttp2Stream;
  readonly #session: ClientHttp2Session | undefined;
  readonly #sessions: SessionManager;
  /** Called when streams don't get through to the server. */
  readonly #disableStreams: () => void;
  readonly #messages = new MessageSplitter();
  readonly #pending = new Map<number, PendingBatch>();
  readonly #openedAtMs = performance.now();
  readonly #idleTimer: NodeJS.Timeout;
  #lastId = 0;
  #headers: ResponseHead["headers"] | undefined;
  #trailers: ResponseHead["trailers"] | undefined;
  /** Whether it was answered by a status alone, before anything of it was taken. */
  #refused = false;
  /** Whether it takes no more. */
  #halfClosed = false;

  constructor(stream: ClientHttp2Stream, sessions: SessionManager, disableStreams: () => void) {
    this.#stream = stream;
    this.#session = stream.session as ClientHttp2Session | undefined;
    this.#sessions = sessions;
    this.#disableStreams = disableStreams;
    this.#idleTimer = setTimeout(this.#onIdle, IDLE_MS).unref();
    const broken = brokenError(stream, sessions.authority);
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
    // The server ends it, or something cut it off; then it closes once this side has ended, too.
    stream.on("end", this.#halfClose);
    stream.on("error", (cause) => this.#fail(broken(cause)));
    stream.on("close", () => {
      this.#end(broken);
      clearTimeout(this.#idleTimer);
      this.#session?.off("goaway", this.#halfClose);
      dropListeners(stream);
    });
    // The server answers what is under way, and waits for this side to end.
    this.#session?.once("goaway", this.#halfClose);
  }

  /** Whether it takes another batch. */
  isOpen(): boolean {
    if (performance.now() - this.#openedAtMs > MAX_AGE_MS) this.#halfClose();
    return !this.#halfClosed && !this.#stream.closed && !this.#stream.destroyed;
  }

  send(
    { items = [] }: MessageInitShape<typeof BatchRequestSchema>,
    timeoutMs: number,
  ): Promise<BatchResponse | undefined> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen()) throw connectionError({ authority: this.#sessions.authority, spokeHttp2: true });
      const id = ++this.#lastId;
      const timeout = durationFromMs(Math.max(0, Math.ceil(timeoutMs)));
      const frame = frameMessage(BatchStreamRequestSchema, { items, id, timeout });
      const timer = setTimeout(() => this.#expire(id), timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      this.#stream.write(frame);
      this.#idleTimer.refresh();
    });
  }

  /** What answers is no gRPC service: its page is not read. */
  #refuse(error: ConnectError, httpStatus: number): void {
    // Something on the way that takes no such request may take single calls, unlike a balancer that has no replica (5xx).
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
    // One that came too late has been given up.
    if (pending === undefined) return;
    if (error === undefined) pending.resolve(create(BatchResponseSchema, { items }));
    else pending.reject(errorFromItem(error));
  }

  #expire(id: number): void {
    const pending = this.#take(id);
    pending?.reject(timedOut());
    // Whoever keeps a stream's messages until it ends never lets it begin.
    if (this.#headers === undefined) this.#disableStreams();
    this.#halfClose();
  }

  #take(id: number): PendingBatch | undefined {
    const pending = this.#pending.get(id);
    if (pending === undefined) return undefined;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    return pending;
  }

  /** The answers that are still to come will come. */
  readonly #halfClose = () => {
    if (this.#halfClosed) return;
    this.#halfClosed = true;
    this.#stream.end();
    this.#idleTimer.refresh();
  };

  readonly #onIdle = () => {
    if (this.#pending.size > 0) this.#idleTimer.refresh();
    else if (this.#halfClosed) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.#halfClose();
  };

  /** Nothing comes any more: every batch that has no answer fails. */
  #end(broken: () => ConnectError): void {
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

  /** The server knows no such stream. */
  #resolveUnsupported(): void {
    this.#disableStreams();
    for (const id of [...this.#pending.keys()]) this.#take(id)?.resolve(undefined);
  }

  #fail(error: ConnectError): void {
    this.#halfClosed = true;
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(error);
  }
}
