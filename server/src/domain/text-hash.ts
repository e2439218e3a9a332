/*
 * Bob Jenkins' lookup3 (https://burtleburtle.net/bob/c/lookup3.c, public domain), as `hash_bytes_extended` in Postgres'
 * `src/common/hashfn.c` computes it on a little-endian machine. All arithmetic is modulo 2^32.
 */

const GOLDEN_RATIO = 0x9e3779b9;
/** What Postgres adds to a hash's start value. */
const POSTGRES_OFFSET = 3923095;

/**
 * Returns a function that hashes texts as Postgres does in a database in UTF-8: it returns the lower 32 bits of
 * `hashtextextended(text, seed)` as a signed number. With the seed 0 these are `hashtext(text)`.
 *
 * @param seed a signed 64-bit number.
 */
export function createTextHash(seed: bigint): (text: string) => number {
  const unsigned = BigInt.asUintN(64, seed);
  const high = Number(unsigned >> 32n) | 0;
  const low = Number(unsigned & 0xffffffffn) | 0;
  return (text) => lowerHash(utf8(text), high, low);
}

/** Returns a string whose characters are the bytes of a text in UTF-8: nearly always the text itself. */
function utf8(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return Buffer.from(text, "utf8").toString("latin1");
  }
  return text;
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** Returns four bytes as a number. */
function word(bytes: string, at: number): number {
  return (
    bytes.charCodeAt(at) |
    (bytes.charCodeAt(at + 1) << 8) |
    (bytes.charCodeAt(at + 2) << 16) |
    (bytes.charCodeAt(at + 3) << 24)
  );
}

/** Returns up to four bytes as a number. Reads none beyond the end, which would make `charCodeAt` slow for all callers. */
function lastWord(bytes: string, at: number): number {
  let value = 0;
  for (let i = Math.min(bytes.length - at, 4) - 1; i >= 0; i--)
    value = (value << 8) | bytes.charCodeAt(at + i);
  return value;
}

/** Returns the lower half of the hash. All arithmetic is modulo 2^32. */
function lowerHash(bytes: string, seedHigh: number, seedLow: number): number {
  const { length } = bytes;
  let a = (GOLDEN_RATIO + length + POSTGRES_OFFSET) | 0;
  let b = a;
  let c = a;
  // The seed is mixed in as if it were the first words; the seed 0 is not mixed in.
  let at = seedHigh === 0 && seedLow === 0 ? 0 : -12;
  for (; at <= length - 12; at += 12) {
    if (at < 0) {
      a = (a + seedHigh) | 0;
      b = (b + seedLow) | 0;
    } else {
      a = (a + word(bytes, at)) | 0;
      b = (b + word(bytes, at + 4)) | 0;
      c = (c + word(bytes, at + 8)) | 0;
    }
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
  }
  a = (a + lastWord(bytes, at)) | 0;
  b = (b + lastWord(bytes, at + 4)) | 0;
  // The lowest byte of c is left to the length.
  c = (c + (lastWord(bytes, at + 8) << 8)) | 0;
  c = (c ^ b) - rotated(b, 14);
  a = (a ^ c) - rotated(c, 11);
  b = (b ^ a) - rotated(a, 25);
  c = (c ^ b) - rotated(b, 16);
  a = (a ^ c) - rotated(c, 4);
  b = (b ^ a) - rotated(a, 14);
  return ((c ^ b) - rotated(b, 24)) | 0;
}
