import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { toBinary } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { type Status, StatusSchema } from "../../gen/google/rpc/status_pb.ts";

/** What every answer begins with; without a date, which gRPC has no use for. */
export const GRPC_HEADERS = {
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity,deflate,gzip",
};

/** How a stream ended, as its trailers say it; without a message, as headers that nothing follows. */
export type GrpcStatus = OutgoingHttpHeaders;

export const OK: GrpcStatus = { "grpc-status": 0 };

/** The status of an error. */
export function grpcStatus(code: Code, message: string, details?: Status): GrpcStatus {
  const status = { "grpc-status": code, "grpc-message": encodeURI(message) };
  if (details === undefined) return status;
  const encoded = Buffer.from(toBinary(StatusSchema, details)).toString("base64");
  return { ...status, "grpc-status-details-bin": encoded };
}

/** Whether a stream asks for a call as gRPC does: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. */
export function isGrpcCall(headers: IncomingHttpHeaders): boolean {
  return headers[":method"] === "POST" && CONTENT_TYPE.test(headers["content-type"] ?? "");
}

/** Protobuf and no other format, and not gRPC-Web; what follows a semicolon says nothing. */
const CONTENT_TYPE = /^application\/grpc(\+proto)?\s*(;|$)/i;

/** Of a header that may come more than once. */
export function firstOf(values: string | string[] | undefined): string | undefined {
  return Array.isArray(values) ? values[0] : values;
}

/** Whether nobody is there any more to be answered. */
export function isOver(stream: ServerHttp2Stream): boolean {
  return stream.closed || stream.destroyed;
}

/**
 * V8 collects what a native object holds only when it collects everything, and a closed stream is held by one of Node's: with
 * its listeners go the call's request and headers. Whatever breaks a stream also closes it, and then there is nobody to be
 * answered.
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
