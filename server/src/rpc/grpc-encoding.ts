import type { IncomingHttpHeaders } from "node:http";
import { gunzipSync, inflateSync } from "node:zlib";

/** The header under which the compression of a call's message reaches `decode`. */
export const ENCODING_HEADER = "onceward-encoding";

/**
 * Moves `grpc-encoding` out of grpc-js's sight, so that a message is decompressed after authentication, one at a time and
 * up to a limit. grpc-js would decompress all at once, whoever sent them: a connection's worth of small messages that each
 * swell to the limit would be gigabytes.
 *
 * `ours` says whether the call is for a handler that uses `decode`. Health and reflection take no compressed message.
 */
export function takeEncodingHeader(headers: IncomingHttpHeaders, ours: boolean): void {
  const encoding = headers["grpc-encoding"];
  if (encoding !== "gzip" && encoding !== "deflate") return;
  if (ours) {
    delete headers["grpc-encoding"];
    headers[ENCODING_HEADER] = encoding;
  } else headers["grpc-encoding"] = `${encoding}, here`;
}

/**
 * A message as it was before compression. A call that names a compression may still send its message plain, and the flag
 * that tells does not get here; but neither algorithm's first bytes can begin a request.
 *
 * @throws if it is larger than `maxBytes`, or damaged.
 */
export function decode(message: Buffer, encoding: string | undefined, maxBytes: number): Buffer {
  const limit = { maxOutputLength: maxBytes };
  if (encoding === "gzip" && startsLikeGzip(message)) return gunzipSync(message, limit);
  if (encoding === "deflate" && startsLikeZlib(message)) return inflateSync(message, limit);
  return message;
}

/** https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1. In protobuf, 0x1f would be of a wire type that isn't. */
function startsLikeGzip(message: Buffer): boolean {
  return message.byteLength >= 2 && message.readUInt16BE() === 0x1f8b;
}

/** https://www.rfc-editor.org/rfc/rfc1950#section-2.2. In protobuf, 0x78 would be field 15, which no request has. */
function startsLikeZlib(message: Buffer): boolean {
  return message.byteLength >= 2 && message[0] === 0x78 && message.readUInt16BE() % 31 === 0;
}
