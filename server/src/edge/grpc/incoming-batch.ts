import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { CallHead, IncomingCall } from "../pipeline.ts";
import type { ReceivedMessage } from "../read-message.ts";
import { firstOf, isClosed } from "./streams.ts";

/** The headers of a BatchStream, which hold for all its batches. */
export class StreamHead implements CallHead {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream;
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    // The pipeline gives each batch its own request id.
    return name === "x-request-id" ? undefined : firstOf(this.#headers[name]);
  }

  get cancelled(): boolean {
    return isClosed(this.#stream);
  }
}

/** One message of a BatchStream, as a call of Batch. */
export class IncomingBatch extends StreamHead implements IncomingCall {
  readonly #message: Buffer;
  readonly timeoutMs: number | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    message: Buffer,
    timeoutMs: number | undefined,
  ) {
    super(stream, headers);
    this.#message = message;
    this.timeoutMs = timeoutMs;
  }

  /** Returns the BatchStreamRequest. Its other fields are skipped as a BatchRequest's unknown fields are. */
  receive(): ReceivedMessage {
    return { bytes: this.#message, format: "binary", compression: undefined };
  }

  get signal(): AbortSignal {
    throw new Error("no operation of a batch waits for its caller to leave");
  }
}
