import {
  MAX_CONTENT_TYPE_BYTES,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_NAME_BYTES,
  MAX_METADATA_VALUE_BYTES,
} from "../domain/limits.ts";
import type { Policy } from "../domain/policy.ts";
import type { Result } from "../domain/record.ts";
import { Refusal } from "../domain/refusal.ts";
import { Result_Kind, type Result as ResultMessage } from "../gen/onceward/v1/record_pb.ts";
import type { Violations } from "./violations.ts";

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
  return { kind: kind === Result_Kind.FAILURE ? "failure" : "success", payload, contentType, metadata };
}

/** @throws Refusal RESULT_TOO_LARGE for a result that is larger than the policy allows. */
export function checkResultSize({ payload }: Result, { maxResultBytes }: Policy): void {
  const resultBytes = payload.byteLength;
  if (resultBytes <= maxResultBytes) return;
  throw new Refusal(
    "RESULT_TOO_LARGE",
    `The result has ${resultBytes} bytes; the policy allows ${maxResultBytes}.`,
    { metadata: { limit_bytes: String(maxResultBytes), actual_bytes: String(resultBytes) } },
  );
}
