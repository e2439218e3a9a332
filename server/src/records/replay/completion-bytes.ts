import type { CachedCompletion } from "../record.ts";

/**
 * The encoding of a cached completion, in memory and in Redis:
 *
 * | bytes    |                                                                                   |
 * | -------- | --------------------------------------------------------------------------------- |
 * | 32       | first claimed, completed, end of the result's and of the key's retention: doubles |
 * | 1        | kind of the result                                                                |
 * | 1, 2, 4  | lengths of fingerprint (0: none), content type, metadata (0: none)                |
 * | 1        | length of the claim id                                                            |
 * | the rest | fingerprint, content type, metadata as JSON, claim id, payload                    |
 */
const FIRST_CLAIMED_AT = 0;
const COMPLETED_AT = 8;
const RESULT_EXPIRES_AT = 16;
const EXPIRES_AT = 24;
const KIND_AT = 32;
const FINGERPRINT_LENGTH_AT = 33;
const CONTENT_TYPE_LENGTH_AT = 34;
const METADATA_LENGTH_AT = 36;
const CLAIM_ID_LENGTH_AT = 40;
const TEXTS_AT = 41;

const SUCCESS = 1;
const FAILURE = 2;

/** Encodes a completion. */
export function encodeCompletion(completion: CachedCompletion): Buffer {
  const { fingerprint, claimId, result } = completion;
  const { payload, contentType, metadataJson } = result;
  const fingerprintLength = fingerprint === undefined ? 0 : fingerprint.byteLength;
  const contentTypeLength = contentType === "" ? 0 : Buffer.byteLength(contentType);
  const metadataLength = metadataJson === "" ? 0 : Buffer.byteLength(metadataJson);
  const claimIdLength = claimId === "" ? 0 : Buffer.byteLength(claimId);
  const textsLength = fingerprintLength + contentTypeLength + metadataLength + claimIdLength;
  const bytes = Buffer.allocUnsafe(TEXTS_AT + textsLength + payload.byteLength);
  bytes.writeDoubleLE(completion.firstClaimedAtMs, FIRST_CLAIMED_AT);
  bytes.writeDoubleLE(completion.completedAtMs, COMPLETED_AT);
  bytes.writeDoubleLE(completion.resultExpiresAtMs, RESULT_EXPIRES_AT);
  bytes.writeDoubleLE(completion.expiresAtMs, EXPIRES_AT);
  bytes.writeUInt8(result.kind === "failure" ? FAILURE : SUCCESS, KIND_AT);
  bytes.writeUInt8(fingerprintLength, FINGERPRINT_LENGTH_AT);
  bytes.writeUInt16LE(contentTypeLength, CONTENT_TYPE_LENGTH_AT);
  bytes.writeUInt32LE(metadataLength, METADATA_LENGTH_AT);
  bytes.writeUInt8(claimIdLength, CLAIM_ID_LENGTH_AT);
  let at = TEXTS_AT;
  if (fingerprint !== undefined) bytes.set(fingerprint, at);
  at += fingerprintLength;
  if (contentTypeLength > 0) at += bytes.write(contentType, at);
  if (metadataLength > 0) at += bytes.write(metadataJson, at);
  if (claimIdLength > 0) at += bytes.write(claimId, at);
  bytes.set(payload, at);
  return bytes;
}

/** Decodes a completion; its payload and fingerprint are views of the bytes. */
export function decodeCompletion(bytes: Buffer): CachedCompletion {
  const contentTypeAt = TEXTS_AT + bytes.readUInt8(FINGERPRINT_LENGTH_AT);
  const metadataAt = contentTypeAt + bytes.readUInt16LE(CONTENT_TYPE_LENGTH_AT);
  const claimIdAt = metadataAt + bytes.readUInt32LE(METADATA_LENGTH_AT);
  const payloadAt = claimIdAt + bytes.readUInt8(CLAIM_ID_LENGTH_AT);
  return {
    fingerprint: contentTypeAt === TEXTS_AT ? undefined : bytes.subarray(TEXTS_AT, contentTypeAt),
    claimId: payloadAt === claimIdAt ? "" : bytes.toString("utf8", claimIdAt, payloadAt),
    firstClaimedAtMs: bytes.readDoubleLE(FIRST_CLAIMED_AT),
    completedAtMs: bytes.readDoubleLE(COMPLETED_AT),
    resultExpiresAtMs: bytes.readDoubleLE(RESULT_EXPIRES_AT),
    expiresAtMs: bytes.readDoubleLE(EXPIRES_AT),
    result: {
      kind: bytes.readUInt8(KIND_AT) === FAILURE ? "failure" : "success",
      contentType: metadataAt === contentTypeAt ? "" : bytes.toString("utf8", contentTypeAt, metadataAt),
      metadataJson: claimIdAt === metadataAt ? "" : bytes.toString("utf8", metadataAt, claimIdAt),
      payload: bytes.subarray(payloadAt),
    },
  };
}
