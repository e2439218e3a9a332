import type { BatchResponseItem } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { Checkpoint, Result } from "../../gen/onceward/v1/record_pb.ts";

/** An upper bound of an item's numbers, timestamps and owner, with their tags. */
const FIXED_BYTES = 384;
/** An upper bound of a record's other parts of bounded length: key, namespace, fingerprint and release reason. */
const RECORD_BYTES = 2048;
/** An upper bound of the tags and lengths of a part and of the messages around it. */
const FRAMING_BYTES = 16;

/**
 * Returns an upper bound of the encoded size of an item of a batch's reply. Only parts without a small bound are counted:
 * encoding every item to learn its exact size would double the cost of a batch.
 */
export function responseItemBytes({ response }: BatchResponseItem): number {
  switch (response.case) {
    case "claim":
      switch (response.value.outcome.case) {
        case "completed":
          return FIXED_BYTES + resultBytes(response.value.outcome.value.result);
        case "claimed":
        case "ambiguous":
          return FIXED_BYTES + checkpointBytes(response.value.outcome.value.checkpoint);
        case "inProgress":
        case "recorded":
        case undefined:
          return FIXED_BYTES;
      }
      break;
    case "lookup":
      return (
        FIXED_BYTES +
        (response.value.record === undefined ? 0 : RECORD_BYTES) +
        resultBytes(response.value.record?.result) +
        checkpointBytes(response.value.record?.checkpoint)
      );
    case "error":
      return FIXED_BYTES + textBytes(response.value.message) + violationBytes(response.value.fieldViolations);
    case "complete":
    case "release":
    case "extendLease":
    case undefined:
      return FIXED_BYTES;
  }
}

function resultBytes(result: Result | undefined): number {
  if (result === undefined) return 0;
  let bytes = result.payload.byteLength + textBytes(result.contentType);
  for (const name in result.metadata) bytes += textBytes(name) + textBytes(result.metadata[name] ?? "");
  return bytes + FRAMING_BYTES;
}

function checkpointBytes(checkpoint: Checkpoint | undefined): number {
  return checkpoint === undefined
    ? 0
    : checkpoint.state.byteLength + textBytes(checkpoint.name) + FRAMING_BYTES;
}

function violationBytes(
  violations: readonly { readonly field: string; readonly description: string }[],
): number {
  let bytes = 0;
  for (const { field, description } of violations) bytes += textBytes(field) + textBytes(description);
  return bytes;
}

function textBytes(text: string): number {
  return Buffer.byteLength(text) + FRAMING_BYTES;
}
