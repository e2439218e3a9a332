/** The contract's limits (`idempotency.proto`) that are checked before the wire, where the mistake can still be named. */

/** Of a key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 255;
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** SHA-256. */
export const FINGERPRINT_BYTES = 32;
export const MAX_OWNER_BYTES = 128;
export const MAX_RELEASE_REASON_BYTES = 1024;
export const MAX_CHECKPOINT_NAME_BYTES = 128;
export const MAX_CHECKPOINT_STATE_BYTES = 16 * 1024;
/** No policy takes a larger result; most take less, which only the service knows. */
export const MAX_RESULT_BYTES = 1024 * 1024;
/** Of a result's content type. */
export const MAX_CONTENT_TYPE_BYTES = 255;
/** Of a result's metadata: how many, and the size of a name and of a value. */
export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_NAME_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 4096;
export const MIN_LEASE_MS = 1000;
/** No policy grants a longer lease; most grant less, which only the service knows. */
export const MAX_LEASE_MS = 24 * 3_600_000;
/** Of one Claim; a longer wait is made of several. */
export const MAX_WAIT_MS = 60_000;
export const MAX_BATCH_ITEMS = 1000;
/** Of a request message. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
