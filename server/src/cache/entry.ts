import { createHmac } from "node:crypto";
import type { LiveRecord, Result } from "../domain/record.ts";

/**
 * A completed record as Redis holds it: a digest, the length of a JSON header, the header, the payload.
 *
 * The digest covers the entry's own name, so that a value that was altered, cut off, or stored under another record's
 * name is no value; it is keyed by the installation's secret, so that one who can write to Redis can't make a result up.
 */
const DIGEST_BYTES = 16;
const LENGTH_BYTES = 4;
/** Part of what is digested: an entry of another format is no entry. */
const FORMAT = "onceward-entry-1";

interface Header {
  readonly fencingToken: string;
  readonly attempt: number;
  readonly claimId: string;
  readonly owner: string;
  readonly fingerprint: string | null;
  readonly firstClaimedAtMs: number;
  readonly claimedAtMs: number;
  readonly leaseExpiresAtMs: number;
  readonly expiresAtMs: number;
  readonly seenAtMs: number;
  readonly completedAtMs: number;
  readonly resultExpiresAtMs: number;
  readonly resultDigest: string;
  readonly kind: Result["kind"];
  readonly contentType: string;
  readonly metadata: Result["metadata"];
}

/** Undefined unless the record is completed and has its result. */
export function encodeEntry(name: string, record: LiveRecord, secret: string): Buffer | undefined {
  const { phase, fingerprint } = record;
  if (phase.kind !== "completed" || phase.result === undefined) return undefined;
  const { kind, contentType, metadata, payload } = phase.result;
  const header: Header = {
    fencingToken: String(record.fencingToken),
    attempt: record.attempt,
    claimId: record.claimId,
    owner: record.owner,
    fingerprint: fingerprint === undefined ? null : Buffer.from(fingerprint).toString("base64"),
    firstClaimedAtMs: record.firstClaimedAtMs,
    claimedAtMs: record.claimedAtMs,
    leaseExpiresAtMs: record.leaseExpiresAtMs,
    expiresAtMs: record.expiresAtMs,
    seenAtMs: record.seenAtMs,
    completedAtMs: phase.completedAtMs,
    resultExpiresAtMs: phase.resultExpiresAtMs,
    resultDigest: Buffer.from(phase.resultDigest).toString("base64"),
    kind,
    contentType,
    metadata,
  };
  const headerBytes = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(headerBytes.byteLength);
  const body = Buffer.concat([length, headerBytes, payload]);
  return Buffer.concat([digest(name, body, secret), body]);
}

/** Undefined if the bytes are not the entry of that name, whole and unaltered. */
export function decodeEntry(
  name: string,
  id: LiveRecord["id"],
  bytes: Buffer,
  secret: string,
): LiveRecord | undefined {
  const body = bytes.subarray(DIGEST_BYTES);
  if (body.byteLength < LENGTH_BYTES || !bytes.subarray(0, DIGEST_BYTES).equals(digest(name, body, secret)))
    return undefined;
  try {
    return parseBody(id, body);
  } catch {
    return undefined;
  }
}

/** @throws if the header is none. */
function parseBody(id: LiveRecord["id"], body: Buffer): LiveRecord {
  const payloadAt = LENGTH_BYTES + body.readUInt32BE();
  const header: Header = JSON.parse(body.toString("utf8", LENGTH_BYTES, payloadAt));
  const { fencingToken, fingerprint, completedAtMs, resultExpiresAtMs, resultDigest, ...rest } = header;
  const { kind, contentType, metadata, ...record } = rest;
  return {
    ...record,
    id,
    fencingToken: BigInt(fencingToken),
    fingerprint: fingerprint === null ? undefined : Buffer.from(fingerprint, "base64"),
    // Of a claim that is over.
    leaseRemainingMs: 0,
    checkpoint: undefined,
    phase: {
      kind: "completed",
      completedAtMs,
      resultExpiresAtMs,
      resultDigest: Buffer.from(resultDigest, "base64"),
      result: { kind, contentType, metadata, payload: body.subarray(payloadAt) },
    },
  };
}

function digest(name: string, body: Buffer, secret: string): Buffer {
  const hash = createHmac("sha256", secret)
    .update(`${FORMAT}:${Buffer.byteLength(name)}:${name}`)
    .update(body)
    .digest();
  return hash.subarray(0, DIGEST_BYTES);
}
