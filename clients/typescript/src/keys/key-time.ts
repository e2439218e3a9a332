import { MAX_TIME_MS } from "../wire/limits.ts";

/** A UUID with a time (RFC 9562, section 5), whose version is group 4. */
const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-([167])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
/** https://github.com/ulid/spec: 26 digits of Crockford's base 32, of which the first ten are the milliseconds. */
const ULID = /^([0-7][0-9a-hjkmnp-tv-z]{9})[0-9a-hjkmnp-tv-z]{16}$/i;
const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";
/** From 15 October 1582, when the timestamps of versions 1 and 6 begin, to 1970. */
const GREGORIAN_EPOCH_MS = 12_219_292_800_000;
/** The timestamps of versions 1 and 6 count units of 100 ns. */
const TICKS_PER_MS = 10_000n;

/**
 * Returns when a key was made, to the millisecond, if the key contains it: the whole key is a UUID of version 1, 6 or 7, or a
 * ULID. Undefined for every other key, and for a time beyond the year 9999, which no Timestamp holds. The service reads keys in
 * the same way.
 */
export function keyTime(key: string): Date | undefined {
  const ms = uuidMs(key) ?? ulidMs(key);
  return ms === undefined || ms > MAX_TIME_MS ? undefined : new Date(ms);
}

function uuidMs(key: string): number | undefined {
  const [, first = "", second = "", version, third = ""] = UUID.exec(key) ?? [];
  switch (version) {
    case "7":
      return Number.parseInt(first + second, 16);
    case "6":
      return ticksMs(first + second + third);
    case "1":
      return ticksMs(third + second + first);
    default:
      return undefined;
  }
}

function ticksMs(hex: string): number {
  return Number(BigInt(`0x${hex}`) / TICKS_PER_MS) - GREGORIAN_EPOCH_MS;
}

function ulidMs(key: string): number | undefined {
  const digits = ULID.exec(key)?.[1]?.toLowerCase();
  if (digits === undefined) return undefined;
  return [...digits].reduce((ms, digit) => ms * CROCKFORD.length + CROCKFORD.indexOf(digit), 0);
}
