import type { IncomingMessage } from "node:http";

/**
 * Returns the body as the framework's parser has left it.
 *
 * @throws Error if that may not be all of it: a body that nobody has parsed, a stream, or the text fields of a multipart
 *   form, whose files are elsewhere. The request would pass for any other.
 */
export function parsedBody(request: IncomingMessage, body: unknown): unknown {
  const { "content-type": contentType = "", "content-length": length, ...headers } = request.headers;
  const sent = headers["transfer-encoding"] !== undefined || Number(length) > 0;
  if (!sent || body instanceof Uint8Array) return body;
  if (/^multipart\//i.test(contentType)) {
    throw new Error("idempotency() needs a fingerprint option for multipart bodies: files are no part of it");
  }
  // Express 4 makes an empty object of a body that none of its parsers takes.
  const unread = isEmptyObject(body) && !request.readableDidRead;
  if (body === undefined || unread || isStream(body)) {
    throw new Error(
      "idempotency() comes after a body parser for this content type, or needs a fingerprint option",
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

/** A request target such as `/charges?dry=1` in its two parts; the query keeps its question mark. */
export function splitTarget(target: string): { path: string; query: string } {
  const start = target.indexOf("?");
  if (start === -1) return { path: target, query: "" };
  return { path: target.slice(0, start), query: target.slice(start) };
}
