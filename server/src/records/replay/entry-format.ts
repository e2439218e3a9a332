import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

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

/** How completions are held in memory and stored in Redis. */
export interface EntryFormat {
  /** Returns the form in which memory holds an encoded completion. */
  hold(name: string, completion: Buffer): Buffer;
  /** Returns the encoded completion of that form; undefined if it is not the one of this name. */
  reveal(name: string, held: Buffer): Buffer | undefined;
  /** Returns the entry in Redis. */
  store(name: string, held: Buffer): Buffer;
  /** Returns what memory holds of an entry from Redis; undefined if the entry was altered. */
  load(name: string, entry: Buffer): Buffer | undefined;
}

/** Returns the format in plain form, with a digest in Redis that `secret` keys. An entry of another format is refused. */
export function signedFormat(secret: string): EntryFormat {
  const key = createSecretKey(secret, "utf8");
  return {
    hold: (_, completion) => completion,
    reveal: (_, held) => held,
    store: (name, held) => sealEntry(name, held, key),
    load: (name, entry) => openEntry(name, entry, key),
  };
}
