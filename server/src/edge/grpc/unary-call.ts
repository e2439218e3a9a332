import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { type Message, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Refusal } from "../../domain/refusal.ts";
import type { Principal } from "../../domain/tenant.ts";
import type { Status } from "../../gen/google/rpc/status_pb.ts";
import type { ConnectionBytes } from "../arriving-bytes.ts";
import { grpcCompression } from "../compression.ts";
import { toStatus } from "../errors.ts";
import { createMessageReader, frameMessage, MAX_READ_BYTES, MessageRefused } from "../grpc-messages.ts";
import { messageLimits } from "../message-limits.ts";
import type { IncomingCall, Pipeline } from "../pipeline.ts";
import type { ReceivedMessage } from "../read-message.ts";
import type { Route } from "../route.ts";
import { takeIn } from "../take-in.ts";
import { parseTimeoutMs } from "../timeouts.ts";
import type { UnreadReplies } from "../unread-replies.ts";
import type { SlowRequests } from "./slow-requests.ts";
import { firstOf, forgetWhenClosed, GRPC_HEADERS, grpcStatus, isOver, OK } from "./streams.ts";

/** As Node would make it of them for each answer. */
const RAW_HEADERS = Object.entries(GRPC_HEADERS).flat().map(String);
const WITH_MESSAGE = { waitForTrailers: true, sendDate: false };
const WITHOUT_MESSAGE = { endStream: true, sendDate: false };

/** What the calls of a connection share. */
export interface UnaryConnection {
  readonly pipeline: Pipeline;
  readonly slowRequests: Pick<SlowRequests, "watch">;
  readonly arriving: ConnectionBytes;
  readonly unread: UnreadReplies;
}

/** Answers a gRPC call: one message in, one message out or a status. */
export function answerUnaryCall(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  route: Route,
  connection: UnaryConnection,
): void {
  forgetWhenClosed(stream);
  const call = new IncomingGrpcCall(stream, headers, route, connection);
  const encode = (reply: Message) => encodeUnlessUnread(stream, route, reply, connection.unread);
  connection.pipeline.answer(route, call, encode).then(
    (reply) => answer(stream, reply),
    (error: unknown) => fail(stream, error),
  );
}

/** Undefined, and not even encoded, where nobody reads, or nobody is there any more. */
function encodeUnlessUnread(
  stream: ServerHttp2Stream,
  { method }: Route,
  reply: Message,
  unread: UnreadReplies,
): Uint8Array | undefined {
  if (unread.isFull() || isOver(stream)) return undefined;
  const bytes = toBinary(method.output, reply);
  unread.add(stream, bytes.byteLength);
  return bytes;
}

function answer(stream: ServerHttp2Stream, reply: Uint8Array | undefined): void {
  if (isOver(stream)) return;
  if (reply === undefined) {
    endWith(stream, Code.Unavailable, "The connection has too many replies that were not read.");
    return;
  }
  if (reply.byteLength > MAX_READ_BYTES) {
    endWith(stream, Code.ResourceExhausted, `The reply is ${reply.byteLength} bytes.`);
    return;
  }
  stream.respond(RAW_HEADERS, WITH_MESSAGE);
  stream.on("wantTrailers", sendOk);
  stream.end(frameMessage(reply));
}

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers(OK);
}

function fail(stream: ServerHttp2Stream, error: unknown): void {
  if (error instanceof MessageRefused) {
    endWith(stream, error.code, error.message);
    return;
  }
  if (!(error instanceof Refusal)) throw error;
  const status = toStatus(error);
  endWith(stream, status.code, status.message, status);
}

/** An answer that is nothing but a status. */
function endWith(stream: ServerHttp2Stream, code: number, message: string, details?: Status): void {
  if (isOver(stream)) return;
  stream.respond({ ...GRPC_HEADERS, ...grpcStatus(code, message, details) }, WITHOUT_MESSAGE);
  // What of the message was not taken in is read and dropped, so that its sender gets to the answer.
  stream.resume();
}

class IncomingGrpcCall implements IncomingCall {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #route: Route;
  readonly #connection: UnaryConnection;
  #controller: AbortController | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    route: Route,
    connection: UnaryConnection,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#route = route;
    this.#connection = connection;
  }

  header(name: string): string | undefined {
    return firstOf(this.#headers[name]);
  }

  get timeoutMs(): number | undefined {
    return parseTimeoutMs(this.header("grpc-timeout"));
  }

  async receive(principal: Principal): Promise<ReceivedMessage> {
    // A request is slow from here on: before, it was not read.
    const { slowRequests, arriving, unread } = this.#connection;
    unread.admit();
    slowRequests.watch(this.#stream);
    const reader = createMessageReader(messageLimits(this.#route.method).binary.maxBytes);
    await takeIn(this.#stream, reader, arriving, principal);
    const { message, compressed } = reader.end();
    const compression = compressed ? grpcCompression(this.header("grpc-encoding")) : undefined;
    return { bytes: message, format: "binary", compression };
  }

  get cancelled(): boolean {
    return isOver(this.#stream);
  }

  /** Made when somebody asks: few calls wait for anything but the database. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      if (this.cancelled) controller.abort();
      else this.#stream.once("close", () => controller.abort());
      this.#controller = controller;
    }
    return this.#controller.signal;
  }
}
