// Written by `npm run generate` from the options of proto/.

export const DEFAULT_LEASE_MS = 30000;
export const FINGERPRINT_BYTES = 32;
export const MAX_API_KEY_LABEL_BYTES = 128;
export const MAX_API_KEY_NAMESPACES = 100;
export const MAX_BATCH_ITEMS = 1000;
export const MAX_CHECKPOINT_NAME_BYTES = 128;
export const MAX_CHECKPOINT_STATE_BYTES = 16384;
export const MAX_CLAIM_ID_BYTES = 128;
export const MAX_CONTENT_TYPE_BYTES = 255;
export const MAX_KEY_BYTES = 255;
export const MAX_LEASE_MS = 86400000;
export const MAX_MESSAGE_BYTES = 4194304;
export const MAX_METADATA_BYTES = 16384;
export const MAX_METADATA_ENTRIES = 64;
export const MAX_METADATA_NAME_BYTES = 128;
export const MAX_METADATA_VALUE_BYTES = 4096;
export const MAX_OWNER_BYTES = 128;
export const MAX_REASON_BYTES = 1024;
export const MAX_RELEASE_REASON_BYTES = 1024;
export const MAX_RESULT_BYTES = 1048576;
export const MAX_TIMESTAMP_MS = 253402300799999;
export const MAX_WAIT_MS = 60000;
export const MIN_LEASE_MS = 1000;
export const MIN_RETENTION_S = 60;
export const NAMESPACE_PATTERN = /^(?:[a-z0-9][a-z0-9._-]{0,62})$/u;
export const NAMESPACE_RULE = "must be 1-63 lower-case letters, digits, dots, underscores or hyphens, and begin with a letter or digit";
