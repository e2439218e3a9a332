import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import { type Status, StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { FailedCall, ProtocolError, REQUEST_ID_HEADER, toStatus } from "../errors.ts";
import type { CallHead } from "../observed-call.ts";

/** The headers of every reply, but for the date, which gRPC does not use. */
export const GRPC_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity,deflate,gzip",
};

/** A stream's status as trailers, or, in a reply without a message, as headers that end the stream. */
export type GrpcStatus = OutgoingHttpHeaders;

const WITHOUT_MESSAGE = { endStream: true, sendDate: false };

export const OK: GrpcStatus = { "grpc-status": 0 };

/** Returns the status of an error. */
export function grpcStatus(code: Code, message: string, details?: Status): GrpcStatus {
  const status = { "grpc-status": code, "grpc-message": encodeURI(message) };
  if (details === undefined) return status;
  const encoded = Buffer.from(toBinary(StatusSchema, details)).toString("base64");
  return { ...status, "grpc-status-details-bin": encoded };
}

/**
 * Returns the headers of the status that ends a stream after a failure. Never throws: it runs where an error would be
 * an unhandled rejection, which ends the process. An error that nothing has refused a call with is a defect: INTERNAL,
 * and a warning of the process.
 */
export function failureStatus(failure: unknown): GrpcStatus {
  const { error, requestId } =
    failure instanceof FailedCall ? failure : { error: failure, requestId: undefined };
  const headers = requestId === undefined ? {} : { [REQUEST_ID_HEADER]: requestId };
  if (error instanceof ProtocolError) return { ...headers, ...grpcStatus(error.code, error.message) };
  const status = toStatus(asRefusal(error), requestId);
  return { ...headers, ...grpcStatus(status.code, status.message, status) };
}

/** Returns the status of a stream whose message can't be read; `invalid` describes one that is not a message of its type. */
export function unreadableStatus(error: unknown, invalid: string): GrpcStatus {
  return error instanceof ProtocolError
    ? grpcStatus(error.code, error.message)
    : grpcStatus(Code.InvalidArgument, invalid);
}

/** Returns a refusal as it is, and another error as INTERNAL, with a warning of the process. */
export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  process.emitWarning(error instanceof Error ? error : String(error));
  return new Refusal("INTERNAL", "An internal error.", { cause: error });
}

/** Whether a stream is a gRPC call: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. */
export function isGrpcCall(headers: IncomingHttpHeaders): boolean {
  return headers[":method"] === "POST" && CONTENT_TYPE.test(headers["content-type"] ?? "");
}

/** Protobuf, no other format, and not gRPC-Web. Parameters after a semicolon are ignored. */
const CONTENT_TYPE = /^application\/grpc(\+proto)?\s*(;|$)/i;

/** Returns the first value of a header that may be repeated. */
export function firstOf(values: string | string[] | undefined): string | undefined {
  return Array.isArray(values) ? values[0] : values;
}

/** Whether a stream can no longer be answered. */
export function isClosed(stream: ServerHttp2Stream): boolean {
  return stream.closed || stream.destroyed;
}

/** Ends a stream with the headers of a status and no message; closes it if an answer has begun. */
export function endWithStatus(stream: ServerHttp2Stream, status: GrpcStatus): void {
  if (isClosed(stream)) return;
  if (stream.headersSent) {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return;
  }
  stream.respond({ ...GRPC_HEADERS, ...status }, WITHOUT_MESSAGE);
  // The rest of the request is read and dropped, so that its sender gets to the answer.
  stream.resume();
}

/** Begins an answer of messages, after which come the trailers of `status`. */
export function beginAnswer(
  stream: ServerHttp2Stream,
  status: () => GrpcStatus = () => OK,
  headers: OutgoingHttpHeaders = GRPC_HEADERS,
): void {
  stream.respond(headers, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(status()));
}

/**
 * Removes all listeners of a stream when it closes, and with them the references to the call's request and
 * headers: an object of Node's holds the closed stream until the next full garbage collection
 * (decisions/0009). Errors of the stream are ignored: each also closes the stream, and a closed stream can't
 * be answered.
 */
export function forgetWhenClosed(stream: ServerHttp2Stream): void {
  stream.on("error", ignore);
  stream.on("close", forget);
}

function ignore(): void {}

function forget(this: ServerHttp2Stream): void {
  this.removeAllListeners();
  this.on("error", ignore);
}

/** The headers of a stream. */
export class StreamHead implements CallHead {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly peer: string | undefined;
  #controller: AbortController | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, peer: string | undefined) {
    this.stream = stream;
    this.headers = headers;
    this.peer = peer;
  }

  header(name: string): string | undefined {
    return firstOf(this.headers[name]);
  }

  /** Browsers do not speak native gRPC. */
  get sessionCookie(): undefined {
    return undefined;
  }

  get cancelled(): boolean {
    return isClosed(this.stream);
  }

  /** Created when it is used: few calls wait for anything but the database. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      if (this.cancelled) controller.abort(CLOSED);
      else this.stream.once("close", () => controller.abort(CLOSED));
      this.#controller = controller;
    }
    return this.#controller.signal;
  }
}

/** One for all calls: each stream closes, and a reason of its own would capture a stack. */
const CLOSED = new DOMException("The stream is closed.", "AbortError");

/**
 * The largest message that is read from a stream. Above the contract's limit, so that a message slightly over
 * that limit is refused under its id; a larger one ends the stream (RESOURCE_EXHAUSTED) before it is read.
 */
export const MAX_FRAMED_BYTES = 2 * MAX_MESSAGE_BYTES;
