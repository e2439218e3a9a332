import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { type Status, StatusSchema } from "../../gen/google/rpc/status_pb.ts";

/** The headers of every reply, but for the date, which gRPC does not use. */
export const GRPC_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity,deflate,gzip",
};

/** A stream's status as trailers, or, in a reply without a message, as headers that end the stream. */
export type GrpcStatus = OutgoingHttpHeaders;

export const OK: GrpcStatus = { "grpc-status": 0 };

/** Returns the status of an error. */
export function grpcStatus(code: Code, message: string, details?: Status): GrpcStatus {
  const status = { "grpc-status": code, "grpc-message": encodeURI(message) };
  if (details === undefined) return status;
  const encoded = Buffer.from(toBinary(StatusSchema, details)).toString("base64");
  return { ...status, "grpc-status-details-bin": encoded };
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
