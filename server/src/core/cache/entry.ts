import { createHmac, type KeyObject } from "node:crypto";

/**
 * An entry in Redis consists of a digest and the encoded completion.
 *
 * The digest covers the entry's name, so that an altered or truncated value, or one stored under another
 * name, is refused. It is keyed by the installation's secret, so that write access to Redis is not enough to
 * forge a result.
 */
const DIGEST_BYTES = 16;
/** What an entry is bound to beside its name, signed or encrypted, so that entries of another format are refused. */
export const FORMAT = "onceward-entry-2";

/** Returns the entry of these bytes under this name. */
export function sealEntry(name: string, bytes: Uint8Array, key: KeyObject): Buffer {
  const entry = Buffer.allocUnsafe(DIGEST_BYTES + bytes.byteLength);
  entry.set(digest(name, bytes, key));
  entry.set(bytes, DIGEST_BYTES);
  return entry;
}

/** Returns a view of an entry's bytes; undefined if it is not a complete, unaltered entry of that name. */
export function openEntry(name: string, entry: Buffer, key: KeyObject): Buffer | undefined {
  const bytes = entry.subarray(DIGEST_BYTES);
  return digest(name, bytes, key).equals(entry.subarray(0, DIGEST_BYTES)) ? bytes : undefined;
}

function digest(name: string, bytes: Uint8Array, key: KeyObject): Buffer {
  return createHmac("sha256", key)
    .update(`${FORMAT}:${Buffer.byteLength(name)}:${name}`)
    .update(bytes)
    .digest()
    .subarray(0, DIGEST_BYTES);
}
