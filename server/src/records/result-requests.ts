import {
  MAX_CONTENT_TYPE_BYTES,
  MAX_METADATA_BYTES,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_NAME_BYTES,
  MAX_METADATA_VALUE_BYTES,
} from "../domain/limits.ts";
import type { Policy } from "../domain/policy.ts";
import { Refusal } from "../domain/refusal.ts";
import type { Violations } from "../domain/violations.ts";
import { Result_Kind, type Result as ResultMessage } from "../gen/onceward/v1/record_pb.ts";
import type { Result } from "./record.ts";
import { encodeMetadata, resultBytes } from "./result-bytes.ts";

/**
 * Parses a result to be stored. A missing one is a violation and gives undefined.
 *
 * @param field the result's name in the request.
 */
export function parseResult(
  field: string,
  message: ResultMessage | undefined,
  violations: Violations,
): Result | undefined {
  if (message === undefined) {
    violations.add(field, "is required");
    return undefined;
  }
  const { kind, payload, contentType, metadata } = message;
  if (kind !== Result_Kind.SUCCESS && kind !== Result_Kind.FAILURE) {
    violations.add(`${field}.kind`, "must be KIND_SUCCESS or KIND_FAILURE");
  }
  violations.text(`${field}.content_type`, contentType, { maxBytes: MAX_CONTENT_TYPE_BYTES });
  const entries = Object.entries(metadata);
  if (entries.length > MAX_METADATA_ENTRIES) {
    violations.add(
      `${field}.metadata`,
      `must have at most ${MAX_METADATA_ENTRIES} entries, has ${entries.length}`,
    );
  }
  for (const [name, value] of entries.slice(0, MAX_METADATA_ENTRIES)) {
    violations.text(`${field}.metadata`, name, { minBytes: 1, maxBytes: MAX_METADATA_NAME_BYTES });
    violations.prose(`${field}.metadata`, value, { maxBytes: MAX_METADATA_VALUE_BYTES });
  }
  const metadataJson = encodeMetadata(metadata);
  const metadataBytes = Buffer.byteLength(metadataJson);
  if (metadataBytes > MAX_METADATA_BYTES) {
    violations.add(
      `${field}.metadata`,
      `must be at most ${MAX_METADATA_BYTES} bytes as JSON, is ${metadataBytes} bytes`,
    );
  }
  return { kind: kind === Result_Kind.FAILURE ? "failure" : "success", payload, contentType, metadataJson };
}

/** @throws Refusal RESULT_TOO_LARGE for a result that is larger, with its metadata, than the policy allows. */
export function checkResultSize(result: Result, { maxResultBytes }: Policy): void {
  const bytes = resultBytes(result);
  if (bytes <= maxResultBytes) return;
  throw new Refusal(
    "RESULT_TOO_LARGE",
    `The result has ${bytes} bytes with its metadata; the policy allows ${maxResultBytes}.`,
    { metadata: { limit_bytes: String(maxResultBytes), actual_bytes: String(bytes) } },
  );
}
