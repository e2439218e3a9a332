import canonicalize from "canonicalize";
import type { InvalidRequestError } from "./error-catalogue.ts";
import { FINGERPRINT_BYTES } from "./limits.ts";
import { omitMembers } from "./omit-members.ts";
import { sha256 } from "./sha256.ts";
import { refusedField } from "./violations.ts";

/** What of a value counts. */
export interface FingerprintOptions {
  /**
   * Members that differ between deliveries of one operation, as JSON Pointers (RFC 6901): `/sentAt`, `/meta/traceId`. One
   * that is not there is not missed. They lead through objects; arrays are taken whole.
   */
  readonly omit?: readonly string[];
}

/**
 * The 32 bytes that bind a key to one request: SHA-256 of the value's canonical JSON (RFC 8785: members sorted, numbers
 * as ECMAScript prints them), so that equal requests have equal fingerprints, however they were put together. 32 bytes
 * are taken as they are, as a hash made elsewhere.
 *
 * As in JSON.stringify, `toJSON` counts (a Date is its ISO text), a member that is undefined is left out, and undefined in
 * an array is null.
 *
 * @throws InvalidRequestError for bytes that are not 32 and for what JSON can't say: BigInt, a circular value, NaN and the
 *   infinities, lone surrogates, a function, undefined alone.
 */
export function fingerprintOf(value: unknown, { omit = [] }: FingerprintOptions = {}): Uint8Array {
  if (value instanceof Uint8Array) {
    if (value.byteLength === FINGERPRINT_BYTES) return value;
    throw refused(
      `as bytes, must be the ${FINGERPRINT_BYTES} of a SHA-256, is ${value.byteLength}; hash them first`,
    );
  }
  return sha256(canonicalJson(omitMembers(value, omit)));
}

function canonicalJson(value: unknown): string {
  let json: string | undefined;
  try {
    json = canonicalize(value);
    // The library writes a function within the value as the bare word.
    if (json?.includes("undefined")) JSON.parse(json);
  } catch (cause) {
    throw refused(`must be a JSON value: ${cause instanceof Error ? cause.message : cause}`, cause);
  }
  if (json === undefined) throw refused(`must be a JSON value, is a ${typeof value}`);
  return json;
}

function refused(description: string, cause?: unknown): InvalidRequestError {
  return refusedField("fingerprint", description, cause);
}
