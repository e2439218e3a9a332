import canonicalize from "canonicalize";
import { OncewardError } from "../errors/errors.ts";
import { base64Url, sha256 } from "../wire/bytes.ts";
import { FINGERPRINT_BYTES } from "../wire/limits.ts";
import { parseOmissions } from "./omissions.ts";
import {
  type FileDigest,
  type PlainValue,
  plainValue,
  refusedFingerprint,
  unsupportedFingerprint,
} from "./plain-value.ts";

/** Selects the parts of a value that count. */
export interface FingerprintOptions {
  /**
   * Members that differ between deliveries of one operation, as JSON Pointers (RFC 6901): `/sentAt`, `/meta/traceId`. A
   * pointer to a missing member has no effect. Pointers lead through objects; arrays always count as a whole.
   * Default: none.
   */
  readonly omit?: readonly string[];
}

/**
 * No JSON text begins with this prefix, so that a value without bodies never has the fingerprint of one with bodies.
 */
const BODIES_SCHEME = "onceward.fingerprint.bodies.v1:";

/** A file is read in parts of this size, one part in memory at a time. */
const FILE_PART_BYTES = 1024 * 1024;

/**
 * Returns the 32 bytes that bind a key to one request: the SHA-256 of the value's canonical JSON (RFC 8785: members
 * sorted, numbers as ECMAScript prints them), so that equal requests have equal fingerprints, in any order in which they
 * were built. A value of 32 bytes is returned unchanged, as a hash made elsewhere.
 *
 * - As in JSON.stringify, `toJSON` is called (a Date is its ISO text), a member that is undefined is omitted, and
 *   undefined in an array is null.
 * - The bodies ArrayBuffer, URLSearchParams and FormData count by their content, alone or within the value; files and
 *   Blobs only in {@link fingerprintWithFiles}.
 * - Any other object is refused with its path, because two of them with different content would have the same JSON: a
 *   Map, a Set, Headers, an Error, an instance of a class without `toJSON`.
 *
 * @throws InvalidRequestError for such an object, for bytes of another length than 32, and for values without a JSON
 *   form: BigInt, a number beyond 2^53 - 1 and below 10^21, which may have been rounded, a circular value, NaN and the
 *   infinities, lone surrogates, a function, an invalid Date, undefined alone. Its one violation is of the field `fingerprint`.
 */
export function fingerprintOf(value: unknown, options: FingerprintOptions = {}): Uint8Array {
  return digestOf(value, options, (_, where) => {
    throw refusedFingerprint(
      `has ${where}, whose content is read by await fingerprintWithFiles() and by run()`,
    );
  });
}

/**
 * Does what {@link fingerprintOf} does, and reads the content of Blobs and Files, alone, in FormData or within the
 * value. A file counts by its bytes, name and type.
 *
 * @throws InvalidRequestError as `fingerprintOf`, and for a file that can't be read.
 */
export async function fingerprintWithFiles(
  value: unknown,
  options: FingerprintOptions = {},
): Promise<Uint8Array> {
  const files = new Map<Blob, string>();
  const first = digestOf(value, options, (file) => {
    files.set(file, "");
    return "";
  });
  if (files.size === 0) return first;
  // One after the other, so that only one part of all files is in memory.
  for (const file of files.keys()) files.set(file, await digestOfFile(file));
  return digestOf(value, options, (file, where) => {
    const digest = files.get(file);
    if (digest === undefined) throw refusedFingerprint(`has ${where} since it began to be read`);
    return digest;
  });
}

function digestOf(value: unknown, { omit = [] }: FingerprintOptions, digestOfFile: FileDigest): Uint8Array {
  if (value instanceof Uint8Array) {
    if (value.byteLength === FINGERPRINT_BYTES) return value;
    const description = `as bytes, must be the ${FINGERPRINT_BYTES} of a SHA-256, is ${value.byteLength}; hash them first`;
    throw unsupportedFingerprint(description);
  }
  const omissions = parseOmissions(omit);
  try {
    return sha256(canonicalText(plainValue(value, omissions, digestOfFile)));
  } catch (cause) {
    if (cause instanceof OncewardError) throw cause;
    // An error of the value's own toJSON or getter, or a value that is nested too deeply for the stack.
    const detail = cause instanceof Error ? cause.message : `${cause}`;
    const description = `must be a JSON value, bytes or a body: ${detail}`;
    if (cause instanceof RangeError) throw refusedFingerprint(description, cause);
    throw unsupportedFingerprint(description, { cause });
  }
}

function canonicalText({ json, bodies }: PlainValue): string {
  if (bodies.length === 0) return canonicalize(json) ?? "";
  return BODIES_SCHEME + canonicalize([json, bodies]);
}

/** Returns the SHA-256 of the SHA-256s of a file's parts, as base64url. */
async function digestOfFile(file: Blob): Promise<string> {
  const digests: number[] = [];
  try {
    for (let start = 0; start < file.size; start += FILE_PART_BYTES) {
      const part = await file.slice(start, start + FILE_PART_BYTES).arrayBuffer();
      digests.push(...sha256(new Uint8Array(part)));
    }
  } catch (cause) {
    throw refusedFingerprint("has a file that can't be read", cause);
  }
  return base64Url(sha256(Uint8Array.from(digests)));
}
