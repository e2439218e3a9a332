import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { REQUEST_ID_HEADER } from "../errors.ts";
import { firstOf, isClosed } from "../grpc-protocol.ts";
import type { CallHead } from "../observed-call.ts";
import type { IncomingCall } from "../pipeline.ts";
import type { ReceivedMessage } from "../read-message.ts";
import type { Envelope } from "./batch-envelopes.ts";

/** The headers of a BatchStream, which hold for all its batches. */
export class StreamHead implements CallHead {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly peer: string | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, peer: string | undefined) {
    this.#stream = stream;
    this.#headers = headers;
    this.peer = peer;
  }

  header(name: string): string | undefined {
    // The pipeline gives each batch its own request id.
    return name === REQUEST_ID_HEADER ? undefined : firstOf(this.#headers[name]);
  }

  /** Browsers do not speak native gRPC. */
  get sessionCookie(): undefined {
    return undefined;
  }

  get cancelled(): boolean {
    return isClosed(this.#stream);
  }
}

/** One message of a BatchStream, as a call of Batch. */
export class IncomingBatch extends StreamHead implements IncomingCall {
  readonly #message: Buffer;
  readonly timeoutMs: number | undefined;
  readonly #traceparent: string | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    peer: string | undefined,
    message: Buffer,
    { timeoutMs, traceparent }: Envelope,
  ) {
    super(stream, headers, peer);
    this.#message = message;
    this.timeoutMs = timeoutMs;
    this.#traceparent = traceparent;
  }

  override header(name: string): string | undefined {
    // Those of the stream are the trace context of whichever call opened it.
    if (name === "traceparent") return this.#traceparent;
    return name === "tracestate" ? undefined : super.header(name);
  }

  /** Returns the BatchStreamRequest. Its other fields are skipped as a BatchRequest's unknown fields are. */
  receive(): ReceivedMessage {
    return { bytes: this.#message, format: "binary", compression: undefined };
  }

  get signal(): AbortSignal {
    throw new Error("no operation of a batch waits for its caller to leave");
  }
}
