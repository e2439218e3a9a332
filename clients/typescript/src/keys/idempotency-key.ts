import { MAX_KEY_BYTES } from "../wire/limits.ts";

/** The header's name, in lower case as in HTTP/2 and gRPC metadata. */
export const IDEMPOTENCY_KEY = "idempotency-key";
/** The header that marks a replayed answer. */
export const IDEMPOTENCY_REPLAYED = "idempotency-replayed";

/** RFC 8941, 3.3.3: printable ASCII in quotes, where a backslash comes before a quote or another backslash. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/;
/**
 * The form that many deployed clients send: visible ASCII without quotes. Commas and semicolons are excluded, so that
 * neither two headers joined by a proxy nor a malformed structured field is taken for a key.
 */
const BARE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$/;

/**
 * Returns the key in an Idempotency-Key header: a structured-field string
 * (draft-ietf-httpapi-idempotency-key-header), or the same without quotes. Both forms of one text are one key.
 * Returns undefined if the header has neither form, is empty, or is longer than 255 bytes.
 */
export function parseIdempotencyKey(header: string): string | undefined {
  const key = parseStructuredKey(header) ?? BARE.exec(header)?.[0];
  return key !== undefined && isKeyLength(key) ? key : undefined;
}

/** Returns the key in a structured-field string alone; undefined for any other form. */
export function parseStructuredKey(header: string): string | undefined {
  const key = QUOTED.exec(header)?.[1]?.replace(/\\(.)/g, "$1");
  return key !== undefined && isKeyLength(key) ? key : undefined;
}

/** Returns whether a key of ASCII is short enough. */
export function isKeyLength(key: string): boolean {
  return key.length <= MAX_KEY_BYTES;
}

/** Returns a key as the header's structured-field string. @throws TypeError for a key that is not printable ASCII. */
export function formatIdempotencyKey(key: string): string {
  const header = `"${key.replace(/["\\]/g, "\\$&")}"`;
  if (QUOTED.test(header)) return header;
  throw new TypeError("an idempotency key in a header must be printable ASCII, at least one character");
}
