import type { IncomingHttpHeaders } from "node:http";
import { gunzipSync, inflateSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { MessageRefused } from "./grpc-messages.ts";

/** What a message may be compressed by. */
export type Compression = "gzip" | "deflate";

/**
 * What `grpc-encoding` says of a message that is compressed; undefined: nothing, and it is read as it is.
 *
 * @throws MessageRefused UNIMPLEMENTED if it is a compression that the server does not know.
 */
export function compressionOf(encoding: string | undefined): Compression | undefined {
  switch (encoding) {
    case "gzip":
    case "deflate":
      return encoding;
    case undefined:
    case "identity":
      return undefined;
    default:
      throw new MessageRefused(Code.Unimplemented, "Received a message of an unsupported compression");
  }
}

/**
 * A message as it was before compression.
 *
 * @throws if it is larger than `maxBytes`, or damaged.
 */
export function decompress(message: Buffer, compression: Compression | undefined, maxBytes: number): Buffer {
  switch (compression) {
    case "gzip":
      return gunzipSync(message, { maxOutputLength: maxBytes });
    case "deflate":
      return inflateSync(message, { maxOutputLength: maxBytes });
    case undefined:
      return message;
  }
}

/**
 * Lets grpc-js take no compressed message, as UNIMPLEMENTED: it would decompress all at once, whoever sent them. Health
 * and reflection, which it answers, have small ones.
 */
export function refuseCompression(headers: IncomingHttpHeaders): void {
  const encoding = headers["grpc-encoding"];
  if (encoding === "gzip" || encoding === "deflate") headers["grpc-encoding"] = `${encoding}, here`;
}
