import type { OutgoingHttpHeaders } from "node:http2";
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { type BatchRequestSchema, IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { frameMessage, readMessage } from "../wire/grpc-messages.ts";
import { BatchStreams } from "./batch-streams.ts";
import type { Credential } from "./credentials.ts";
import { checkStatus, webHeaders } from "./grpc-status.ts";
import { exchange } from "./http2-exchange.ts";
import type { ResponseHead } from "./http2-streams.ts";
import type { SessionManager } from "./session-manager.ts";
import { VERSION } from "./version.ts";

/** The arguments of `Transport.unary`. */
type UnaryCall<I extends DescMessage, O extends DescMessage> = readonly [
  method: DescMethodUnary<I, O>,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  header: ConstructorParameters<typeof Headers>[0],
  input: MessageInitShape<I>,
  ...unknown[],
];

/**
 * Returns a Connect transport for unary gRPC directly on an HTTP/2 connection. Connect's own transport also supports
 * streams, compression and interceptors, and costs three times as much per call
 * (`server/decisions/0005-what-a-claim-costs.md`).
 *
 * Calls of Batch are sent on a BatchStream if the server supports it: the answers are the same, and cost less.
 */
export function createUnaryTransport(sessions: SessionManager, credential: Credential): Transport {
  const batchStreams = new BatchStreams(sessions, (authorization) =>
    requestHeaders(authorization, undefined, undefined),
  );
  return {
    unary: (...call) => credential.use((authorization) => unary(sessions, batchStreams, authorization, call)),
    stream: () => Promise.reject(new ConnectError("Batches choose their own stream.", Code.Unimplemented)),
  };
}

async function unary<I extends DescMessage, O extends DescMessage>(
  sessions: SessionManager,
  batchStreams: BatchStreams,
  authorization: string,
  [method, signal, timeoutMs, header, input]: UnaryCall<I, O>,
): Promise<UnaryResponse<I, O>> {
  const trace = isBatch(method) ? traceHeader(header) : undefined;
  if (trace !== undefined && signal === undefined && timeoutMs !== undefined) {
    const batch = input as MessageInitShape<typeof BatchRequestSchema>;
    const message = await batchStreams.send({ ...batch, ...trace }, timeoutMs, authorization);
    // The message is of this method's type, which the compiler can't know.
    if (message !== undefined) return new Reply(method, WITHOUT_HEADERS, message as never);
  }
  const answer = await exchange(sessions, {
    path: `/${method.parent.typeName}/${method.name}`,
    headers: requestHeaders(authorization, timeoutMs, header),
    body: frameMessage(method.input, input),
    timeoutMs: timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined,
    signal,
    // Heartbeats have the time of an attempt, or less; pings find a silent connection for the others, whose time is the caller's choice.
    showsSilence: method.localName === "extendLease",
  });
  checkStatus(answer);
  return new Reply(method, answer, readMessage(method.output, answer.body));
}

function isBatch(method: DescMethodUnary): boolean {
  return method.output.typeName === IdempotencyService.method.batch.output.typeName;
}

/**
 * Returns the trace context of a batch's headers, as a field of BatchStreamRequest; undefined if there are other headers, for which
 * a batch on a stream has no place.
 */
function traceHeader(
  header: ConstructorParameters<typeof Headers>[0],
): { readonly traceparent?: string } | undefined {
  if (header === undefined) return {};
  const { traceparent, ...others } = Object.fromEntries(new Headers(header));
  if (Object.keys(others).length > 0) return undefined;
  return traceparent === undefined ? {} : { traceparent };
}

/** A batch on a stream has no headers of its own. */
const WITHOUT_HEADERS: ResponseHead = { headers: {}, trailers: {} };

class Reply<I extends DescMessage, O extends DescMessage> implements UnaryResponse<I, O> {
  readonly stream = false;
  readonly method: DescMethodUnary<I, O>;
  readonly message: MessageShape<O>;
  readonly #answer: ResponseHead;

  constructor(method: DescMethodUnary<I, O>, answer: ResponseHead, message: MessageShape<O>) {
    this.method = method;
    this.message = message;
    this.#answer = answer;
  }

  get service() {
    return this.method.parent;
  }
  /** Created on demand, because it is rarely read. */
  get header(): Headers {
    return webHeaders(this.#answer.headers);
  }
  get trailer(): Headers {
    return webHeaders(this.#answer.trailers);
  }
}

/** The largest timeout in gRPC's header with the unit milliseconds: eight digits. */
const MAX_TIMEOUT_MS = 99_999_999;

function requestHeaders(
  authorization: string,
  timeoutMs: number | undefined,
  own: ConstructorParameters<typeof Headers>[0],
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = own === undefined ? {} : Object.fromEntries(new Headers(own));
  headers["content-type"] = "application/grpc+proto";
  headers["user-agent"] ??= `onceward-typescript/${VERSION}`;
  headers.te = "trailers";
  headers.authorization = authorization;
  if (timeoutMs !== undefined && timeoutMs > 0)
    headers["grpc-timeout"] = `${Math.min(Math.ceil(timeoutMs), MAX_TIMEOUT_MS)}m`;
  return headers;
}
