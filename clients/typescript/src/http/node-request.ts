import type { IncomingMessage } from "node:http";

/**
 * Returns the body as the framework's parser left it.
 *
 * @throws Error if part of the body may be missing: no parser has read it, it is a stream, or it is the text fields
 *   of a multipart form without its files. Different requests would get the same fingerprint.
 */
export function parsedBody(request: IncomingMessage, body: unknown): unknown {
  const { "content-type": contentType = "", "content-length": length, ...headers } = request.headers;
  const sent = headers["transfer-encoding"] !== undefined || Number(length) > 0;
  // Express 4 sets an empty object if none of its parsers has read a body.
  const unread = isEmptyObject(body) && !request.readableDidRead;
  if (!sent) return unread ? undefined : body;
  if (body instanceof Uint8Array) return body;
  if (/^multipart\//i.test(contentType)) {
    throw new Error(
      "the guard needs a fingerprint option for multipart forms whose files are not in the body",
    );
  }
  if (body === undefined || unread || isStream(body)) {
    throw new Error(
      "the guard comes after a body parser for this content type, or needs a fingerprint option",
    );
  }
  return body;
}

function isEmptyObject(body: unknown): boolean {
  return typeof body === "object" && body !== null && Object.keys(body).length === 0;
}

function isStream(body: unknown): boolean {
  if (typeof body !== "object" || body === null) return false;
  return "pipe" in body || "getReader" in body || Symbol.asyncIterator in body;
}

/** Splits a request target such as `/charges?dry=1` into its path and its query, which keeps its question mark. */
export function splitTarget(target: string): { path: string; query: string } {
  const start = target.indexOf("?");
  if (start === -1) return { path: target, query: "" };
  return { path: target.slice(0, start), query: target.slice(start) };
}
