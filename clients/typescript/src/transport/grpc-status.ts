import type { IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError, validateTrailer } from "@connectrpc/connect/protocol-grpc";
import type { ResponseHead } from "./http2-streams.ts";

const GRPC_CONTENT_TYPE = /^application\/grpc(?:[+; ]|$)/i;
/** RFC 9110, 15.5.14: content too large. */
const TOO_LARGE = 413;

/**
 * Returns the error of an answer that no gRPC service gave, but a balancer, a proxy or another server; undefined if one did.
 * It is UNAVAILABLE whatever the HTTP status is, so that the call is repeated: balancers say 404 or 500 as well as 503 while
 * they have no replica, and gRPC's own table of codes (UNIMPLEMENTED, UNKNOWN) would end the call. Only a request that is
 * too large stays so when it is repeated: RESOURCE_EXHAUSTED.
 */
export function notGrpc(headers: ResponseHead["headers"]): ConnectError | undefined {
  const { ":status": status = 0, "content-type": type = "no content type" } = headers;
  // A gRPC service that answers with a failed HTTP status says why in its own (gRPC over HTTP2, "Responses").
  if (GRPC_CONTENT_TYPE.test(type) && (status === 200 || "grpc-status" in headers)) return undefined;
  const message = `a server that is no gRPC service, such as a load balancer, answered HTTP ${status} with ${type}`;
  return new ConnectError(message, status === TOO_LARGE ? Code.ResourceExhausted : Code.Unavailable);
}

/**
 * Checks what a gRPC service says of a call: in the trailers, or, without a message, in the headers.
 *
 * @throws ConnectError if the call failed.
 */
export function checkStatus({ headers, trailers }: ResponseHead): void {
  const encoding = headers["grpc-encoding"] ?? "identity";
  if (encoding !== "identity") {
    throw new ConnectError(`the answer's encoding ${encoding} was not asked for`, Code.Internal);
  }
  if (trailers["grpc-status"] === OK) return;
  const header = webHeaders(headers);
  const error = findTrailerError(header);
  if (error !== undefined) throw error;
  validateTrailer(webHeaders(trailers), header);
}

const OK = "0";

/** Without HTTP/2's own, which a Headers can't hold. */
export function webHeaders(headers: IncomingHttpHeaders): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of Array.isArray(value) ? value : [value]) made.append(name, one);
  }
  return made;
}
