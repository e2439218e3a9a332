/** The limits of `idempotency.proto` that the client checks before it sends a request, to name the mistake. */

/** A key's length in bytes of UTF-8. */
export const MAX_KEY_BYTES = 255;
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** {@link NAMESPACE_PATTERN} in words, as the service's errors have it. */
export const NAMESPACE_RULE =
  "must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit";
/** The length of a SHA-256. */
export const FINGERPRINT_BYTES = 32;
export const MAX_OWNER_BYTES = 128;
export const MAX_CLAIM_ID_BYTES = 128;
export const MAX_RELEASE_REASON_BYTES = 1024;
export const MAX_CHECKPOINT_NAME_BYTES = 128;
export const MAX_CHECKPOINT_STATE_BYTES = 16 * 1024;
/** The largest result of any policy. Most policies allow less, which only the service knows. */
export const MAX_RESULT_BYTES = 1024 * 1024;
/** The length of a result's content type. */
export const MAX_CONTENT_TYPE_BYTES = 255;
/** A result's metadata: the number of entries, and the lengths of a name and a value. */
export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_NAME_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 4096;
/** All of a result's metadata, as JSON in UTF-8. */
export const MAX_METADATA_BYTES = 16 * 1024;
export const MIN_LEASE_MS = 1000;
/** The longest lease of any policy. Most policies allow less, which only the service knows. */
export const MAX_LEASE_MS = 24 * 3_600_000;
/** The longest wait of one Claim; a longer wait takes several calls. */
export const MAX_WAIT_MS = 60_000;
export const MAX_BATCH_ITEMS = 1000;
/** The length of a request message. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** The range of a google.protobuf.Timestamp, in milliseconds since 1970. */
export const MIN_TIME_MS = Date.parse("0001-01-01T00:00:00Z");
export const MAX_TIME_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** The longest delay of a timer, 24 days: JavaScript keeps it in 32 bits, and a longer one ends at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
