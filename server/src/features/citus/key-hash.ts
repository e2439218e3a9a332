/**
 * Returns Postgres' hash of a text, an int: `hashtext(key)` of a database in UTF-8. Citus finds the shard of a
 * record by it.
 *
 * Bob Jenkins' lookup3, as `hash_bytes` in Postgres' `src/common/hashfn.c` computes it on a little-endian
 * machine. The loop and the shifts are those of the source, so that the two can be compared.
 */
export function hashKey(key: string): number {
  const bytes = Buffer.from(key);
  const seed = (0x9e3779b9 + bytes.length + 3923095) | 0;
  let words: Words = [seed, seed, seed];
  let at = 0;
  for (; bytes.length - at >= BLOCK_BYTES; at += BLOCK_BYTES) words = mixed(added(words, bytes, at));
  return last(added(words, lastBlock(bytes.subarray(at)), 0));
}

type Words = readonly [number, number, number];

const BLOCK_BYTES = 12;

/** Returns the remaining bytes as a block. The lowest byte of the third word is not used. */
function lastBlock(rest: Buffer): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.set(rest.subarray(0, 8));
  block.set(rest.subarray(8), 9);
  return block;
}

function added([a, b, c]: Words, bytes: Buffer, at: number): Words {
  return [
    (a + bytes.readInt32LE(at)) | 0,
    (b + bytes.readInt32LE(at + 4)) | 0,
    (c + bytes.readInt32LE(at + 8)) | 0,
  ];
}

/** `mix` of hashfn.c. */
function mixed([a, b, c]: Words): Words {
  a = (a - c) ^ rotated(c, 4);
  c = (c + b) | 0;
  b = (b - a) ^ rotated(a, 6);
  a = (a + c) | 0;
  c = (c - b) ^ rotated(b, 8);
  b = (b + a) | 0;
  a = (a - c) ^ rotated(c, 16);
  c = (c + b) | 0;
  b = (b - a) ^ rotated(a, 19);
  a = (a + c) | 0;
  c = (c - b) ^ rotated(b, 4);
  b = (b + a) | 0;
  return [a, b, c];
}

/** `final` of hashfn.c: returns the third word. */
function last([a, b, c]: Words): number {
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  return ((c ^ b) - rotated(b, 24)) | 0;
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
