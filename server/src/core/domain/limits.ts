// The limits of the contract that no policy changes. Each is checked before the database is reached.

/** The length of a key in bytes of UTF-8: enough for a URL or three UUIDs, and small enough to keep the index narrow. */
export const MAX_KEY_BYTES = 255;
/** A namespace has 1-63 characters and begins with a letter or digit, so that it can be a DNS label and a metric label. */
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** {@link NAMESPACE_PATTERN} in words, for errors. */
export const NAMESPACE_RULE =
  "must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit";
/** The length of SHA-256. */
export const FINGERPRINT_BYTES = 32;
/** Enough for a UUID, a ULID or a composite with a trace id. */
export const MAX_CLAIM_ID_BYTES = 128;
/** Enough for a pod name and a worker. */
export const MAX_OWNER_BYTES = 128;
export const MAX_RELEASE_REASON_BYTES = 1024;
export const MAX_CHECKPOINT_NAME_BYTES = 128;
/** A checkpoint records progress; it is not meant for payloads. */
export const MAX_CHECKPOINT_STATE_BYTES = 16 * 1024;
export const MAX_CONTENT_TYPE_BYTES = 255;
export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_NAME_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 4096;
/** All of a result's metadata as JSON: enough for the headers of a response, which servers limit to 8 or 16 KiB. */
export const MAX_METADATA_BYTES = 16 * 1024;
/** The reason that an administrator or an operator gives for a change. */
export const MAX_REASON_BYTES = 1024;
export const MAX_API_KEY_LABEL_BYTES = 128;
/** A key for more namespaces should have no list. */
export const MAX_API_KEY_NAMESPACES = 100;
/** A shorter lease would expire during an ordinary network delay. */
export const MIN_LEASE_MS = 1000;
/** The shortest retention. No statement lasts as long: that keeps fencing tokens unique. */
export const MIN_RETENTION_S = 60;
/** The longest wait of a call. To wait longer, repeat the call. */
export const MAX_WAIT_MS = 60_000;
export const MAX_BATCH_ITEMS = 1000;
/** The largest request and the largest reply, on every transport. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** The largest result, with its metadata, that caches keep: a larger one would evict hundreds of others. */
export const MAX_CACHED_BYTES = 16 * 1024;
/**
 * The end of the year 9999, which no reply can exceed. A number cannot hold nanoseconds of that time: the last ones would
 * round to the year 10000.
 */
export const MAX_TIMESTAMP_MS = 253_402_300_799_999;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Returns a duration as errors name a limit, in the largest unit that has a whole number of it: "400 days", "1 h", "15 min", "90 s". */
export function describeLimitMs(ms: number): string {
  if (ms === 0) return "0 s";
  if (ms % DAY_MS === 0) return ms === DAY_MS ? "1 day" : `${ms / DAY_MS} days`;
  if (ms % HOUR_MS === 0) return `${ms / HOUR_MS} h`;
  if (ms % MINUTE_MS === 0) return `${ms / MINUTE_MS} min`;
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}
