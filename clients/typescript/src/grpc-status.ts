import type { IncomingHttpHeaders } from "node:http2";
import { validateResponseWithCompression, validateTrailer } from "@connectrpc/connect/protocol-grpc";
import type { AnsweredWith } from "./http2-streams.ts";

/** @throws ConnectError if the call failed: the status is in the trailers, or, without a message, in the headers. */
export function checkStatus({ headers, trailers }: AnsweredWith): void {
  if (trailers["grpc-status"] === OK && isPlainGrpc(headers)) return;
  const header = webHeaders(headers);
  const { headerError } = validateResponseWithCompression([], headers[":status"] ?? 0, header);
  if (headerError !== undefined) throw headerError;
  validateTrailer(webHeaders(trailers), header);
}

function isPlainGrpc({
  ":status": status,
  "content-type": type,
  "grpc-encoding": encoding,
}: AnsweredWith["headers"]) {
  const isPlain = encoding === undefined || encoding === "identity";
  return status === 200 && isPlain && type?.startsWith("application/grpc");
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
