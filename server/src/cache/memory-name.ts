import { randomBytes } from "node:crypto";

/** A name as bytes of UTF-8 and their hash, until the next name is written. */
export interface Name {
  /** Behind the name are zeros, up to a multiple of four bytes: so it is read in words. */
  readonly view: DataView;
  readonly length: number;
  readonly hash: number;
}

/** Spreads names evenly over 32 bits. */
export type NameHash = (view: DataView, length: number) => number;

/** A copy's name has 345 at most: a scope of 22, a namespace of 63, a key of 255, and what keeps them apart. */
const MAX_NAME_BYTES = 1056;
/** Names, and the entries that they stand in, are read and written in words. */
export const WORD_BYTES = 4;

/** Undefined: a name that is too long, or that has half of a surrogate pair, so that another has the same bytes. */
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

/** MurmurHash3, by words, from a seed of its own: so nobody outside knows which names fall together. */
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
