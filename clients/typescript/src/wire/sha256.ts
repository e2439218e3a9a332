import { utf8Bytes } from "./utf8.ts";

const BLOCK_BYTES = 64;
const LENGTH_BYTES = 8;

/**
 * The 32 bytes of SHA-256, of a text's UTF-8 or of bytes. At once: WebCrypto's is asynchronous, and keys are derived in
 * the middle of the caller's code. Node's own where there is one, found without an import that would break elsewhere.
 */
export function sha256(data: string | Uint8Array): Uint8Array {
  const crypto = globalThis.process?.getBuiltinModule?.("node:crypto");
  return crypto === undefined ? portableSha256(data) : crypto.createHash("sha256").update(data).digest();
}

/** SHA-256 (FIPS 180-4) in plain JavaScript. */
export function portableSha256(data: string | Uint8Array): Uint8Array {
  const message = padded(typeof data === "string" ? utf8Bytes(data) : data);
  const state = Uint32Array.from(INITIAL_STATE);
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < message.byteLength; offset += BLOCK_BYTES) {
    for (let i = 0; i < 16; i++) schedule[i] = message.getUint32(offset + i * 4);
    mix(state, schedule);
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => {
    digest.setUint32(index * 4, word);
  });
  return new Uint8Array(digest.buffer);
}

/** Section 5.1.1: a one bit, zeros, and the length in bits. */
function padded(data: Uint8Array): DataView {
  const blocks = Math.ceil((data.byteLength + 1 + LENGTH_BYTES) / BLOCK_BYTES);
  const bytes = new Uint8Array(blocks * BLOCK_BYTES);
  bytes.set(data);
  bytes[data.byteLength] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setBigUint64(bytes.byteLength - LENGTH_BYTES, BigInt(data.byteLength) * 8n);
  return view;
}

/** Section 6.2.2: one block's schedule, of which the first 16 words are the block, is mixed into the state. */
function mix(state: Uint32Array, schedule: Uint32Array): void {
  for (let i = 16; i < 64; i++) {
    const w15 = word(schedule, i - 15);
    const w2 = word(schedule, i - 2);
    const s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >>> 3);
    const s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >>> 10);
    schedule[i] = word(schedule, i - 16) + s0 + word(schedule, i - 7) + s1;
  }
  const start = [...state];
  let [a, b, c, d, e, f, g, h] = start as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = h + s1 + ((e & f) ^ (~e & g)) + word(ROUND_CONSTANTS, i) + word(schedule, i);
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((mixed, index) => {
    state[index] = word(state, index) + mixed;
  });
}

function rotate(value: number, bits: number): number {
  return (value >>> bits) | (value << (32 - bits));
}

function word(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

/** Sections 4.2.2 and 5.3.3: of the first primes' cube and square roots, the first 32 bits behind the point. */
const ROUND_CONSTANTS = rootsOfPrimes(64, 1 / 3);
const INITIAL_STATE = rootsOfPrimes(8, 1 / 2);

function rootsOfPrimes(count: number, exponent: number): Uint32Array {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate++) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return Uint32Array.from(primes, (prime) => (prime ** exponent % 1) * 2 ** 32);
}
