import { createHmac, type KeyObject } from "node:crypto";

/**
 * A copy's bytes as Redis holds them: a digest before them.
 *
 * The digest covers the entry's own name, so that a value that was altered, cut off, or stored under another record's
 * name is no value; it is keyed by the installation's secret, so that one who can write to Redis can't make a result up.
 */
const DIGEST_BYTES = 16;
/** Part of what is digested: an entry of another format is no entry. */
const FORMAT = "onceward-entry-2";

/** The entry that holds these bytes under this name. */
export function sealEntry(name: string, bytes: Uint8Array, key: KeyObject): Buffer {
  const entry = Buffer.allocUnsafe(DIGEST_BYTES + bytes.byteLength);
  entry.set(digest(name, bytes, key));
  entry.set(bytes, DIGEST_BYTES);
  return entry;
}

/** The bytes that an entry holds, as a view of it; undefined if it is not the entry of that name, whole and unaltered. */
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
