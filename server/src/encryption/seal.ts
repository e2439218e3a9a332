import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from "node:crypto";
import type { EncryptionKey } from "../config/keyring.ts";
import { SEALED_OVERHEAD_BYTES } from "../records/engine/record-values.ts";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = SEALED_OVERHEAD_BYTES - NONCE_BYTES;

/**
 * Returns the key of one record, or of one cached entry: HKDF-Expand of RFC 5869 with SHA-256, whose first
 * block is as long as the key. A configured key is random, so that the extraction before it is not needed.
 *
 * A key of its own for each record keeps random nonces safe: one key may encrypt 2^32 values with them (NIST
 * SP 800-38D, 8.3), which is less than a busy installation stores in a week.
 */
export function deriveKey({ secret }: EncryptionKey, purpose: "record" | "entry", name: string): Buffer {
  return createHmac("sha256", secret).update(`onceward:${purpose}:${name}\u0001`).digest();
}

/** Random bytes for the nonces of many values: asking the system for each takes longer than its encryption. */
const randomness = Buffer.alloc(4096 - (4096 % NONCE_BYTES));
let used = randomness.byteLength;

function writeNonce(to: Buffer): void {
  if (used === randomness.byteLength) {
    randomFillSync(randomness);
    used = 0;
  }
  randomness.copy(to, 0, used, used + NONCE_BYTES);
  used += NONCE_BYTES;
}

/**
 * Encrypts a value: nonce, ciphertext, tag. Only `open` with the same key and the same `place` decrypts it.
 *
 * @param place names where the value is stored: its tenant, its record and its column.
 */
export function seal(key: Buffer, value: Uint8Array, place: string): Buffer {
  const sealed = Buffer.allocUnsafe(SEALED_OVERHEAD_BYTES + value.byteLength);
  writeNonce(sealed);
  const cipher = createCipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
  cipher.setAAD(Buffer.from(place));
  sealed.set(cipher.update(value), NONCE_BYTES);
  cipher.final();
  sealed.set(cipher.getAuthTag(), NONCE_BYTES + value.byteLength);
  return sealed;
}

/** Decrypts a value; undefined if it was sealed under another key or for another place, or was altered. */
export function open(key: Buffer, sealed: Uint8Array, place: string): Buffer | undefined {
  const valueBytes = sealed.byteLength - SEALED_OVERHEAD_BYTES;
  if (valueBytes < 0) return undefined;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES + valueBytes));
  const value = decipher.update(sealed.subarray(NONCE_BYTES, NONCE_BYTES + valueBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return value;
}
