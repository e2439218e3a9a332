import {
  FINGERPRINT_BYTES,
  MAX_API_KEY_LABEL_BYTES,
  MAX_API_KEY_NAMESPACES,
  MAX_BATCH_ITEMS,
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_CHECKPOINT_STATE_BYTES,
  MAX_CLAIM_ID_BYTES,
  MAX_CONTENT_TYPE_BYTES,
  MAX_KEY_BYTES,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_NAME_BYTES,
  MAX_METADATA_VALUE_BYTES,
  MAX_OWNER_BYTES,
  MAX_REASON_BYTES,
  MAX_RELEASE_REASON_BYTES,
  NAMESPACE_PATTERN,
} from "../../../../server/src/core/domain/limits.ts";
import type { JsonSchema } from "./json-schema.ts";

/** The limits of a field that the server checks and a proto file cannot express, and whether a request needs the field. */
export interface FieldLimits extends JsonSchema {
  readonly isRequired?: boolean;
}

const namespace: FieldLimits = { isRequired: true, pattern: NAMESPACE_PATTERN.source };
const key: FieldLimits = { isRequired: true, ...text(1, MAX_KEY_BYTES) };
/** Tokens are positive. */
const fencingToken: FieldLimits = { isRequired: true, pattern: "^[1-9][0-9]{0,18}$" };
const ofRecord = { namespace, key };
const ofClaim = { ...ofRecord, fencing_token: fencingToken };
const fingerprint: FieldLimits = base64(FINGERPRINT_BYTES);

/**
 * The limits by message and field. The limits of other fields, such as those that a policy sets, are in the fields'
 * descriptions.
 */
export const FIELD_LIMITS: Readonly<Record<string, Readonly<Record<string, FieldLimits>>>> = {
  ClaimRequest: {
    ...ofRecord,
    fingerprint,
    claim_id: text(0, MAX_CLAIM_ID_BYTES),
    owner: text(0, MAX_OWNER_BYTES),
  },
  CompleteRequest: { ...ofClaim, result: { isRequired: true } },
  ReleaseRequest: { ...ofClaim, reason: text(0, MAX_RELEASE_REASON_BYTES) },
  ExtendLeaseRequest: ofClaim,
  LookupRequest: ofRecord,
  GetRecordRequest: ofRecord,
  ResolveRecordRequest: { ...ofRecord, reason: { isRequired: true, ...text(1, MAX_REASON_BYTES) } },
  BatchRequest: { items: { isRequired: true, minItems: 1, maxItems: MAX_BATCH_ITEMS } },
  Result: {
    kind: { isRequired: true },
    content_type: text(0, MAX_CONTENT_TYPE_BYTES),
    metadata: {
      maxProperties: MAX_METADATA_ENTRIES,
      propertyNames: text(1, MAX_METADATA_NAME_BYTES),
      additionalProperties: { type: "string", ...text(0, MAX_METADATA_VALUE_BYTES) },
    },
  },
  Checkpoint: {
    name: { isRequired: true, ...text(1, MAX_CHECKPOINT_NAME_BYTES) },
    state: base64(MAX_CHECKPOINT_STATE_BYTES),
  },
  ApiKey: {
    label: text(0, MAX_API_KEY_LABEL_BYTES),
    namespaces: { maxItems: MAX_API_KEY_NAMESPACES },
  },
};

/** JSON Schema counts characters. One of them is at least one byte, so that a longer text is refused in any case. */
function text(minBytes: number, maxBytes: number): FieldLimits {
  return { ...(minBytes > 0 && { minLength: minBytes }), maxLength: maxBytes };
}

/** Returns the limit of the text in base64 of so many bytes. */
function base64(maxBytes: number): FieldLimits {
  return { maxLength: 4 * Math.ceil(maxBytes / 3) };
}
