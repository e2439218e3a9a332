import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { SessionManager } from "./session-manager.ts";

/** What one HTTP/2 stream was answered with. */
export interface Answer {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Question {
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
 *   UNAVAILABLE if there is no connection, or it broke; and what gRPC takes a reset stream for.
 */
export function exchange(sessions: SessionManager, question: Question): Promise<Answer> {
  return new Promise((resolve, reject) => new Exchange(sessions, question, resolve, reject).begin());
}

class Exchange {
  readonly #sessions: SessionManager;
  readonly #question: Question;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: ConnectError) => void;
  readonly #chunks: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #headers: Answer["headers"] = {};
  #trailers: IncomingHttpHeaders = {};
  /** Whether the trailers, or headers that nothing follows, are there. */
  #complete = false;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(
    sessions: SessionManager,
    question: Question,
    resolve: (answer: Answer) => void,
    reject: (error: ConnectError) => void,
  ) {
    this.#sessions = sessions;
    this.#question = question;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    const { path, headers, timeoutMs, signal } = this.#question;
    if (signal?.aborted) {
      this.#abort();
      return;
    }
    signal?.addEventListener("abort", this.#abort);
    if (timeoutMs !== undefined) this.#timer = setTimeout(this.#expire, timeoutMs);
    this.#sessions
      .request("POST", path, headers, {})
      .then((stream) => this.#send(stream))
      .catch((cause: unknown) => this.#fail(unanswered(cause)));
  }

  #send(stream: ClientHttp2Stream): void {
    // Streams that are over have none any more.
    const { session } = stream;
    const isAlone = () => session?.destroyed === false;
    stream.on("error", (cause) => this.#break(isAlone() ? stream.rstCode : undefined, cause));
    if (this.#over) {
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    this.#stream = stream;
    stream.on("response", (headers, flags) => {
      this.#headers = headers;
      this.#complete = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    });
    stream.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#sessions.notifyResponseByteRead(stream);
    });
    stream.on("trailers", (trailers) => {
      this.#trailers = trailers;
      this.#complete = true;
    });
    // What is cut off ends, too, and then closes.
    stream.on("end", () => this.#complete && this.#succeed());
    stream.on("close", () => {
      this.#break(isAlone() ? stream.rstCode : undefined);
      // V8 collects what a native object holds only when it collects everything, and a closed stream is held by one of
      // Node's: with its listeners go this exchange, its question and its answer.
      stream.removeAllListeners();
      stream.on("error", ignore);
    });
    stream.end(this.#question.body);
  }

  #succeed(): void {
    if (!this.#finish()) return;
    const [first] = this.#chunks;
    const body = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#resolve({ headers: this.#headers, trailers: this.#trailers, body });
  }

  /** Every stream closes; for most, their answer was there before. */
  #break(resetWith: number | undefined, cause?: unknown): void {
    if (!this.#over) this.#fail(brokenError(resetWith, cause));
  }

  #fail(error: ConnectError): void {
    if (this.#finish()) this.#reject(error);
  }

  readonly #expire = () => {
    this.#fail(new ConnectError("the operation timed out", Code.DeadlineExceeded));
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  };

  readonly #abort = () => {
    const cause: unknown = this.#question.signal?.reason;
    this.#fail(new ConnectError("This operation was aborted", Code.Canceled, undefined, undefined, cause));
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  };

  /** False if it was over before. */
  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#question.signal?.removeEventListener("abort", this.#abort);
    return true;
  }
}

function ignore(): void {}

/** Nobody can tell whether the call had its effect. */
function unanswered(cause: unknown): ConnectError {
  if (cause instanceof ConnectError && cause.code === Code.Canceled) return cause;
  const message = cause instanceof Error ? cause.message : "the connection ended before the answer";
  return new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
}

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors */
const CODE_OF_RESET: ReadonlyMap<number | undefined, Code> = new Map([
  [constants.NGHTTP2_PROTOCOL_ERROR, Code.Internal],
  [constants.NGHTTP2_INTERNAL_ERROR, Code.Internal],
  [constants.NGHTTP2_FLOW_CONTROL_ERROR, Code.Internal],
  [constants.NGHTTP2_SETTINGS_TIMEOUT, Code.Internal],
  [constants.NGHTTP2_FRAME_SIZE_ERROR, Code.Internal],
  [constants.NGHTTP2_COMPRESSION_ERROR, Code.Internal],
  [constants.NGHTTP2_CONNECT_ERROR, Code.Internal],
  [constants.NGHTTP2_REFUSED_STREAM, Code.Unavailable],
  [constants.NGHTTP2_CANCEL, Code.Canceled],
  [constants.NGHTTP2_ENHANCE_YOUR_CALM, Code.ResourceExhausted],
  [constants.NGHTTP2_INADEQUATE_SECURITY, Code.PermissionDenied],
]);

/** Why a stream has no answer: the server reset it, or, without a code, the connection ended. */
function brokenError(resetWith: number | undefined, cause: unknown): ConnectError {
  const code = CODE_OF_RESET.get(resetWith);
  if (code === undefined) return unanswered(cause);
  const message = `the stream was reset with HTTP/2 error code ${resetWith}`;
  return new ConnectError(message, code, undefined, undefined, cause);
}
