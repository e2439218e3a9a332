import type { RecordValues } from "../../records/engine/record-values.ts";
import type { RecordId } from "../../records/record.ts";
import type { Resolution } from "../records/resolution.ts";

/** A resolution as `record_jobs.resolution` holds it. Bytes are in base64. */
type Stored =
  | { readonly kind: "forget" | "release" }
  | {
      readonly kind: "complete";
      readonly resultKind: "success" | "failure";
      readonly contentType: string;
      /** As `records.result_key_id`: which key encrypts the fields below. */
      readonly keyId: number | null;
      readonly digest: string;
      readonly payload: string;
      /** As `records.result_metadata`. */
      readonly metadata?: string | undefined;
    };

/** Returns a tenant's resolution as JSON, with its result encrypted as a record's is. */
export function writeJobResolution(
  resolution: Resolution,
  tenantId: number,
  encryption: RecordValues,
): string {
  if (resolution.kind !== "complete") return JSON.stringify({ kind: resolution.kind } satisfies Stored);
  const { kind, contentType, payload, metadataJson } = resolution.result;
  const stored = encryption.storedResult(placeOf(tenantId), {
    digest: resolution.resultDigest,
    payload,
    metadata: metadataJson || undefined,
  });
  return JSON.stringify({
    kind: "complete",
    resultKind: kind,
    contentType,
    keyId: encryption.keyId,
    digest: base64(stored.digest),
    payload: base64(stored.payload ?? payload),
    metadata: stored.metadata,
  } satisfies Stored);
}

/**
 * Returns the resolution that `writeJobResolution` wrote.
 *
 * @throws Refusal RECORD_UNREADABLE, as `RecordValues.openRow`.
 */
export function readJobResolution(json: string, tenantId: number, encryption: RecordValues): Resolution {
  const stored = JSON.parse(json) as Stored;
  if (stored.kind !== "complete") return { kind: stored.kind };
  const { namespace, key } = placeOf(tenantId);
  const opened = encryption.openRow({
    tenant_id: tenantId,
    namespace,
    key,
    result_key_id: stored.keyId,
    result_digest: Buffer.from(stored.digest, "base64").toString("hex"),
    result_payload: Buffer.from(stored.payload, "base64"),
    result_metadata: stored.metadata ?? null,
  });
  return {
    kind: "complete",
    result: {
      kind: stored.resultKind,
      contentType: stored.contentType,
      payload: opened.result_payload,
      metadataJson: opened.result_metadata ?? "",
    },
    resultDigest: Buffer.from(opened.result_digest, "hex"),
  };
}

/** What the ciphertext is bound to: no record has an empty namespace. */
function placeOf(tenantId: number): RecordId {
  return { tenantId, namespace: "", key: "record job" };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
