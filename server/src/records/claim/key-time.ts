/** The bits of a UUID that say which version and variant (RFC 9562) it is, and its three groups of time. */
const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-([167])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const UUID_CHARACTERS = 36;

/** The first character of a ULID is at most 7, because 26 characters of 5 bits hold 130 bits and a ULID has 128. */
const ULID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i;
const ULID_CHARACTERS = 26;
const ULID_TIME_CHARACTERS = 10;
/** Crockford's base32, as ULIDs use it (https://github.com/ulid/spec). */
const ULID_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** From 1582-10-15, where UUIDs of versions 1 and 6 begin to count, to the Unix epoch. */
const GREGORIAN_OFFSET_MS = 12_219_292_800_000n;
/** UUIDs of versions 1 and 6 count intervals of 100 ns. */
const INTERVALS_PER_MS = 10_000n;

/**
 * Returns when a key was created, in milliseconds since the Unix epoch, if the whole key is a UUID of version 1, 6 or 7, or a
 * ULID; undefined for every other key. A key that contains such an id is not read: the rest of it may be older or newer.
 */
export function timeInKey(key: string): number | undefined {
  // Every claim comes here, and nearly all other keys have another length.
  if (key.length === UUID_CHARACTERS) return timeInUuid(key);
  if (key.length === ULID_CHARACTERS && ULID.test(key)) return timeInUlid(key.toLowerCase());
  return undefined;
}

function timeInUuid(key: string): number | undefined {
  const [, first = "", second = "", version, third = ""] = UUID.exec(key) ?? [];
  switch (version) {
    case "7":
      return Number.parseInt(first + second, 16);
    case "6":
      return sinceUnixEpochMs(first + second + third);
    case "1":
      return sinceUnixEpochMs(third + second + first);
    default:
      return undefined;
  }
}

function sinceUnixEpochMs(intervals: string): number {
  return Number(BigInt(`0x${intervals}`) / INTERVALS_PER_MS - GREGORIAN_OFFSET_MS);
}

function timeInUlid(key: string): number {
  let ms = 0;
  for (const digit of key.slice(0, ULID_TIME_CHARACTERS)) ms = ms * 32 + ULID_DIGITS.indexOf(digit);
  return ms;
}
