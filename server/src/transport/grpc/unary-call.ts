import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { type Message, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Principal } from "../../domain/tenant.ts";
import { type OutboundBudget, reserveReply } from "../bounds/memory-budgets.ts";
import type { IncomingCall } from "../pipeline.ts";
import { grpcCompression } from "../receive/compression.ts";
import { createMessageReader, frameMessage, readBody } from "../receive/read-body.ts";
import { messageLimits, parseTimeoutMs, type ReceivedMessage } from "../receive/read-message.ts";
import type { Route } from "../route.ts";
import {
  endWithStatus,
  failureStatus,
  GRPC_HEADERS,
  grpcStatus,
  isClosed,
  MAX_FRAMED_BYTES,
  OK,
  StreamHead,
} from "./protocol.ts";
import type { GrpcConnection } from "./session.ts";

/** In the form to which Node would convert an object for each reply. */
const RAW_HEADERS = Object.entries(GRPC_HEADERS).flat().map(String);
const WITH_MESSAGE = { waitForTrailers: true, sendDate: false };

/** Answers a unary gRPC call, with a message or only with a status. */
export function answerUnaryCall(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  route: Route,
  connection: GrpcConnection,
): void {
  const call = new IncomingGrpcCall(stream, headers, route, connection);
  const encode = (reply: Message) => encodeReply(stream, route, reply, connection.outbound);
  connection.pipeline
    .answer(route, call, encode)
    .then((reply) => answer(stream, reply))
    .catch((failure: unknown) => endWithStatus(stream, failureStatus(failure)));
}

/** Returns undefined, and does not encode the reply, if it can't be sent. */
function encodeReply(
  stream: ServerHttp2Stream,
  { method }: Route,
  reply: Message,
  outbound: OutboundBudget,
): Uint8Array | undefined {
  if (outbound.isExhausted() || isClosed(stream)) return undefined;
  const bytes = toBinary(method.output, reply);
  outbound.countUntilClosed(stream, bytes.byteLength);
  return bytes;
}

function answer(stream: ServerHttp2Stream, reply: Uint8Array | undefined): void {
  if (isClosed(stream)) return;
  if (reply === undefined) {
    const unread = "The connection has too many replies that were not read.";
    endWithStatus(stream, grpcStatus(Code.Unavailable, unread));
    return;
  }
  if (reply.byteLength > MAX_FRAMED_BYTES) {
    endWithStatus(stream, grpcStatus(Code.ResourceExhausted, `The reply is ${reply.byteLength} bytes.`));
    return;
  }
  stream.respond(RAW_HEADERS, WITH_MESSAGE);
  stream.on("wantTrailers", sendOk);
  stream.end(frameMessage(reply));
}

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers(OK);
}

class IncomingGrpcCall extends StreamHead implements IncomingCall {
  readonly #route: Route;
  readonly #connection: GrpcConnection;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    route: Route,
    connection: GrpcConnection,
  ) {
    super(stream, headers, connection.peer);
    this.#route = route;
    this.#connection = connection;
  }

  get timeoutMs(): number | undefined {
    return parseTimeoutMs(this.header("grpc-timeout"));
  }

  async receive(principal: Principal): Promise<ReceivedMessage> {
    const { slowRequests, inbound, outbound, replies } = this.#connection;
    outbound.admit();
    await reserveReply(replies, principal, this.#route.method, this.stream);
    // The request's time starts here: before, the server did not read it.
    slowRequests.watch(this.stream);
    const reader = createMessageReader(messageLimits(this.#route.method).binary.maxBytes);
    await readBody(this.stream, reader, inbound, principal);
    const { message, compressed } = reader.end();
    const compression = compressed ? grpcCompression(this.header("grpc-encoding")) : undefined;
    return { bytes: message, format: "binary", compression };
  }
}
