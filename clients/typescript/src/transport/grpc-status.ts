import type { IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { findTrailerError, validateTrailer } from "@connectrpc/connect/protocol-grpc";
import type { ResponseHead } from "./http2-streams.ts";

const GRPC_CONTENT_TYPE = /^application\/grpc(?:[+; ]|$)/i;
/** RFC 9110, 15.5.14: content too large. */
const TOO_LARGE = 413;
/** Longer than any known server's name with its version. */
const MAX_SIGNATURE_CHARACTERS = 100;

/**
 * Returns the error of an answer that is not from a gRPC service but from a load balancer, a proxy or another server;
 * undefined if it is from a gRPC service. The code is UNAVAILABLE for every HTTP status, so that the call is
 * retried: without replicas, balancers answer 404 or 500 as well as 503, and gRPC's own mapping (UNIMPLEMENTED,
 * UNKNOWN) would end the call. Only a request that is too large fails on a retry as well: RESOURCE_EXHAUSTED.
 */
export function notGrpc(headers: ResponseHead["headers"]): ConnectError | undefined {
  const { ":status": status = 0, "content-type": type = "no content type" } = headers;
  // A gRPC service may answer with a failed HTTP status and its own status (gRPC over HTTP2, "Responses").
  if (GRPC_CONTENT_TYPE.test(type) && (status === 200 || "grpc-status" in headers)) return undefined;
  const message = `a server that is not a gRPC service, such as a proxy or a load balancer, answered HTTP ${status} with ${type}${signature(headers)}`;
  return new ConnectError(message, status === TOO_LARGE ? Code.ResourceExhausted : Code.Unavailable);
}

/** Returns how the server names itself, which says what is in between. */
function signature({ server, via }: ResponseHead["headers"]): string {
  const named = [server && `server: ${server}`, via && `via: ${via}`].filter(Boolean).join(", ");
  return named && ` (${named.slice(0, MAX_SIGNATURE_CHARACTERS)})`;
}

/**
 * Checks the gRPC status of a response: in the trailers, or, without a message, in the headers.
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

/** Returns HTTP/2 headers as Headers, without the pseudo-headers, which Headers can't hold. */
export function webHeaders(headers: IncomingHttpHeaders): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of Array.isArray(value) ? value : [value]) made.append(name, one);
  }
  return made;
}
