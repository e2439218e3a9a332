import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { OncewardError } from "../errors/errors.ts";
import { connectionError } from "./connection-failures.ts";
import { notGrpc } from "./grpc-status.ts";
import { brokenError, dropListeners, type ResponseHead, timedOut } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";

/** A whole response. */
export interface GrpcResponse extends ResponseHead {
  readonly body: Buffer;
}

export interface GrpcRequest {
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Undefined: no limit. */
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** Whether no answer in time shows that the connection is silent. */
  readonly showsSilence: boolean;
}

/**
 * Posts one request and resolves with the whole response.
 *
 * @throws ConnectError: DEADLINE_EXCEEDED or CANCELLED as soon as the time is up or the signal aborts, and the stream
 *   is reset; UNAVAILABLE if there is no connection, it broke, or the answer is not from a gRPC service; otherwise
 *   the code that gRPC maps a reset stream to.
 */
export function exchange(sessions: SessionManager, request: GrpcRequest): Promise<GrpcResponse> {
  return new Promise((resolve, reject) => new Exchange(sessions, request, resolve, reject).begin());
}

class Exchange {
  readonly #sessions: SessionManager;
  readonly #request: GrpcRequest;
  readonly #resolve: (answer: GrpcResponse) => void;
  readonly #reject: (error: ConnectError | OncewardError) => void;
  readonly #chunks: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #headers: GrpcResponse["headers"] = {};
  #trailers: IncomingHttpHeaders = {};
  /** Whether the trailers have arrived, or headers that end the stream. */
  #complete = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #beganAtMs = performance.now();
  #settled = false;

  constructor(
    sessions: SessionManager,
    request: GrpcRequest,
    resolve: (answer: GrpcResponse) => void,
    reject: (error: ConnectError | OncewardError) => void,
  ) {
    this.#sessions = sessions;
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    const { path, headers, timeoutMs, signal } = this.#request;
    if (signal?.aborted) {
      this.#abort();
      return;
    }
    signal?.addEventListener("abort", this.#abort);
    if (timeoutMs !== undefined) this.#timer = setTimeout(this.#expire, timeoutMs);
    const { authority } = this.#sessions;
    this.#sessions
      .request("POST", path, headers, {})
      .then((stream) => this.#send(stream))
      .catch((cause: unknown) => this.#fail(connectionError({ authority, spokeHttp2: false }, cause)));
  }

  #send(stream: ClientHttp2Stream): void {
    const broken = brokenError(stream, this.#sessions.authority);
    stream.on("error", (cause) => this.#break(() => broken(cause)));
    if (this.#settled) {
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    this.#stream = stream;
    stream.on("response", (headers, flags) => {
      const error = notGrpc(headers);
      if (error !== undefined) {
        this.#fail(error);
        // The body of such an answer is not needed, and may have no end.
        stream.close(constants.NGHTTP2_CANCEL);
        return;
      }
      this.#headers = headers;
      this.#complete = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on("data", (chunk: Buffer) => {
      if (!this.#settled) this.#chunks.push(chunk);
      this.#sessions.notifyResponseByteRead(stream);
    });
    stream.on("trailers", (trailers) => {
      this.#trailers = trailers;
      this.#complete = true;
    });
    // A stream that is cut off also emits "end" before "close".
    stream.on("end", () => this.#complete && this.#succeed());
    stream.on("close", () => {
      this.#break(broken);
      dropListeners(stream);
    });
    stream.end(this.#request.body);
  }

  #succeed(): void {
    if (!this.#finish()) return;
    const [first] = this.#chunks;
    const body = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#resolve({ headers: this.#headers, trailers: this.#trailers, body });
  }

  /** Fails the call, unless it is settled: every stream closes, mostly after its answer. */
  #break(error: () => ConnectError | OncewardError): void {
    if (!this.#settled) this.#fail(error());
  }

  #fail(error: ConnectError | OncewardError): void {
    if (this.#finish()) this.#reject(error);
  }

  readonly #expire = () => {
    this.#fail(timedOut());
    this.#stream?.close(constants.NGHTTP2_CANCEL);
    if (this.#request.showsSilence) this.#sessions.noteSilence(this.#beganAtMs);
  };

  readonly #abort = () => {
    const cause: unknown = this.#request.signal?.reason;
    this.#fail(new ConnectError("This operation was aborted", Code.Canceled, undefined, undefined, cause));
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  };

  /** Settles the call. Returns false if it was already settled. */
  #finish(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener("abort", this.#abort);
    return true;
  }
}
