import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { OncewardError } from "./errors.ts";
import { FINGERPRINT_BYTES } from "./limits.ts";

/**
 * The 32 bytes that bind a key to one request: SHA-256 of the value's canonical JSON (RFC 8785: members sorted, numbers
 * as ECMAScript prints them), so that equal requests have equal fingerprints, however they were put together. Bytes are
 * taken as they are, as a hash made elsewhere.
 *
 * As in JSON.stringify, `toJSON` counts, and a member that is undefined is left out.
 *
 * @throws OncewardError INVALID_REQUEST for bytes that are not 32 and for what JSON can't say: BigInt, a circular
 *   value, NaN and the infinities, lone surrogates, a function.
 */
export function fingerprintOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) {
    if (value.byteLength === FINGERPRINT_BYTES) return value;
    throw refused(
      `as bytes, must be the ${FINGERPRINT_BYTES} of a SHA-256, is ${value.byteLength}; hash them first`,
    );
  }
  return createHash("sha256").update(canonicalJson(value)).digest();
}

function canonicalJson(value: unknown): string {
  let json: string | undefined;
  try {
    json = canonicalize(value);
  } catch (cause) {
    throw refused(`must be a JSON value: ${cause instanceof Error ? cause.message : cause}`, cause);
  }
  if (json === undefined) throw refused(`must be a JSON value, is a ${typeof value}`);
  return json;
}

function refused(description: string, cause?: unknown): OncewardError {
  const violations = [{ field: "fingerprint", description }];
  return new OncewardError("INVALID_REQUEST", `fingerprint ${description}`, { violations, cause });
}
