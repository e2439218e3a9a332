import { MAX_KEY_BYTES } from "../wire/limits.ts";

/** The header, in the lower case of HTTP/2 and of gRPC's metadata. */
export const IDEMPOTENCY_KEY = "idempotency-key";
/** Says of an answer that it was given before. */
export const IDEMPOTENCY_REPLAYED = "idempotency-replayed";

/** RFC 8941, 3.3.3: printable ASCII in quotes, where a backslash comes before a quote or another backslash. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"$/;
/**
 * What deployed APIs send instead: visible ASCII. Without quotes, commas and semicolons, so that neither two headers
 * that a proxy joined nor a structured field that went wrong is taken for a key.
 */
const BARE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+$/;

/**
 * The key that an Idempotency-Key header carries: a structured-field string as draft-ietf-httpapi-idempotency-key-header
 * has it, or the same without quotes. Both forms of one text are one key; undefined if it is neither, empty, or longer
 * than 255 bytes.
 */
export function parseIdempotencyKey(header: string): string | undefined {
  const key = QUOTED.exec(header)?.[1]?.replace(/\\(.)/g, "$1") ?? BARE.exec(header)?.[0];
  return key !== undefined && key.length <= MAX_KEY_BYTES ? key : undefined;
}

/** A key as the header's structured-field string. @throws TypeError for a key that is no printable ASCII. */
export function formatIdempotencyKey(key: string): string {
  const header = `"${key.replace(/["\\]/g, "\\$&")}"`;
  if (QUOTED.test(header)) return header;
  throw new TypeError("an idempotency key in a header must be printable ASCII, at least one character");
}
