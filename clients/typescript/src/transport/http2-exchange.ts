import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectionError } from "./connection-failures.ts";
import { notGrpc } from "./grpc-status.ts";
import { brokenError, dropListeners, type ResponseHead, timedOut } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";

/** What one HTTP/2 stream was answered with. */
export interface GrpcResponse extends ResponseHead {
  readonly body: Buffer;
}

export interface GrpcRequest {
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Undefined: for ever. */
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Posts one body and gathers what comes back, whole.
 *
 * @throws ConnectError DEADLINE_EXCEEDED or CANCELLED as soon as the time is up or the signal aborts, and the stream is reset;
 *   UNAVAILABLE if there is no connection, it broke, or what answers is no gRPC service; and what gRPC takes a reset stream
 *   for.
 */
export function exchange(sessions: SessionManager, request: GrpcRequest): Promise<GrpcResponse> {
  return new Promise((resolve, reject) => new Exchange(sessions, request, resolve, reject).begin());
}

class Exchange {
  readonly #sessions: SessionManager;
  readonly #request: GrpcRequest;
  readonly #resolve: (answer: GrpcResponse) => void;
  readonly #reject: (error: ConnectError) => void;
  readonly #chunks: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #headers: GrpcResponse["headers"] = {};
  #trailers: IncomingHttpHeaders = {};
  /** Whether the trailers, or headers that nothing follows, are there. */
  #complete = false;
  #timer: NodeJS.Timeout | undefined;
  #settled = false;

  constructor(
    sessions: SessionManager,
    request: GrpcRequest,
    resolve: (answer: GrpcResponse) => void,
    reject: (error: ConnectError) => void,
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
        // Its body is of no use, and may have no end.
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
    // What is cut off ends, too, and then closes.
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

  /** Every stream closes; for most, their answer was there before. */
  #break(error: () => ConnectError): void {
    if (!this.#settled) this.#fail(error());
  }

  #fail(error: ConnectError): void {
    if (this.#finish()) this.#reject(error);
  }

  readonly #expire = () => {
    this.#fail(timedOut());
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  };

  readonly #abort = () => {
    const cause: unknown = this.#request.signal?.reason;
    this.#fail(new ConnectError("This operation was aborted", Code.Canceled, undefined, undefined, cause));
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  };

  /** False if it was over before. */
  #finish(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener("abort", this.#abort);
    return true;
  }
}
