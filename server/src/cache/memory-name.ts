import { randomBytes } from "node:crypto";

/** A name as UTF-8 and its hash. Valid until the next name is written. */
export interface Name {
  /** The name, padded with zeros to a multiple of four bytes, because it is read in words. */
  readonly view: DataView;
  readonly length: number;
  readonly hash: number;
}

/** Hashes a name to 32 bits, evenly distributed. */
export type NameHash = (view: DataView, length: number) => number;

/** A completion's name has at most 345: a scope of 22, a namespace of 63, a key of 255, and separators. */
const MAX_NAME_BYTES = 1056;
/** Names and entries are read and written in words. */
export const WORD_BYTES = 4;

/**
 * Returns a function that writes names to one buffer. It returns undefined for a name that is too long, or
 * that contains half of a surrogate pair, because another name has the same bytes.
 */
export function createNameWriter(hash: NameHash): (text: string) => Name | undefined {
  const bytes = Buffer.from(new ArrayBuffer(MAX_NAME_BYTES + WORD_BYTES));
  const name = { view: new DataView(bytes.buffer), length: 0, hash: 0 };
  return (text) => {
    if (text.length > MAX_NAME_BYTES / 3 || !text.isWellFormed()) return undefined;
    name.length = bytes.write(text);
    name.view.setUint32(name.length, 0);
    name.hash = hash(name.view, name.length);
    return name;
  };
}

/** Returns MurmurHash3 with a random seed, so that a stranger cannot choose names with the same hash. */
export function createNameHash(): NameHash {
  const seed = randomBytes(WORD_BYTES).readInt32LE();
  return (view, length) => {
    let hash = seed ^ length;
    for (let i = 0; i < length; i += WORD_BYTES) {
      const word = Math.imul(view.getInt32(i, true), 0xcc9e2d51);
      hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b873593);
      hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  };
}
