/** Every limit of the contract that no policy tunes. Each is checked before the database is reached. */

/** A key's length in bytes of UTF-8: fits a URL or a composite of three UUIDs, and keeps the index narrow. */
export const MAX_KEY_BYTES = 255;
/** A namespace: starts with a letter or digit, 1-63 characters, so that it is a DNS-like label and a metric label. */
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** SHA-256. */
export const FINGERPRINT_BYTES = 32;
/** Room for a UUID, a ULID or a traced composite. */
export const MAX_CLAIM_ID_BYTES = 128;
/** Room for a pod name and a worker. */
export const MAX_OWNER_BYTES = 128;
export const MAX_RELEASE_REASON_BYTES = 1024;
export const MAX_CHECKPOINT_NAME_BYTES = 128;
/** A checkpoint says how far one came; it is not a place for payloads. */
export const MAX_CHECKPOINT_STATE_BYTES = 16 * 1024;
export const MAX_CONTENT_TYPE_BYTES = 255;
export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_NAME_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 4096;
/** Why an administrator or an operator does something. */
export const MAX_REASON_BYTES = 1024;
export const MAX_API_KEY_LABEL_BYTES = 128;
/** A key that is good for more is better one without a list. */
export const MAX_API_KEY_NAMESPACES = 100;
/** A lease shorter than this would end before an ordinary network hiccup does. */
export const MIN_LEASE_MS = 1000;
/** Nothing is forgotten sooner than this: fencing tokens stay unique because no statement lasts as long. */
export const MIN_RETENTION_S = 60;
/** A call that waits longer than this is better made again. */
export const MAX_WAIT_MS = 60_000;
export const MAX_BATCH_ITEMS = 1000;
/** Of a request and of a reply, on every transport. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
