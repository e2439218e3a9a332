/** The counter's bits: `rand_a` of RFC 9562, 5.7. */
const COUNTER_BITS = 12;
/** A counter begins in its lower half, so that at least 2,048 keys of a millisecond need no later time. */
const FIRST_COUNTER_BITS = COUNTER_BITS - 1;
/** A clock that is set back by more is followed: a key's time then matters more than the order of keys. */
const MAX_AHEAD_MS = 10_000;
/** The version 7, in front of the counter's bits. */
const VERSION = 0x7 << COUNTER_BITS;
/** The variant of RFC 9562: the highest two bits of byte 8. */
const VARIANT = 0b10 << 6;
const BYTES = 16;

let lastMs = 0;
let counter = 0;

/**
 * Returns a new key: a UUID of version 7 (RFC 9562), such as `018f4d5e-7c3b-7a2e-9c1d-2b3a4c5d6e7f`. Make it once, where the
 * operation is created, and store it with the operation: every retry has the same key.
 *
 * - Later keys of this process are larger, also within a millisecond (6.2, method 1). New records then lie next to each other
 *   in the service's indexes, which costs a third of the log of random keys, and two thirds of the processor time.
 * - 62 bits of each key are random, from `crypto.getRandomValues`. A key shows when it was made.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  advance(Date.now(), ((bytes[6] ?? 0) << 8) | (bytes[7] ?? 0));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(lastMs / 2 ** 32));
  view.setUint32(2, lastMs % 2 ** 32);
  view.setUint16(6, VERSION | counter);
  view.setUint8(8, VARIANT | (view.getUint8(8) & 0b11_1111));
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Advances the time, or else the counter, beyond those of the last key. */
function advance(nowMs: number, random: number): void {
  const isLater = nowMs > lastMs || lastMs - nowMs > MAX_AHEAD_MS;
  if (!isLater && counter + 1 < 2 ** COUNTER_BITS) {
    counter++;
    return;
  }
  lastMs = isLater ? nowMs : lastMs + 1;
  counter = random % 2 ** FIRST_COUNTER_BITS;
}
