import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BatchRequestItemSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import type { CheckpointSchema, ResultSchema } from "../gen/onceward/v1/record_pb.ts";

/** One call as an item of a batch. */
export type BatchedRequest = NonNullable<MessageInitShape<typeof BatchRequestItemSchema>["request"]>;

/** A generous bound for tags, lengths, a token, three durations and a timestamp. */
const FIXED_BYTES = 128;
/** A UTF-16 code unit takes at most three bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/** Returns an upper bound of the item's size on the wire, which is cheaper to compute than its size. */
export function maxRequestBytes(request: BatchedRequest): number {
  if (request.case === undefined) return FIXED_BYTES;
  const { namespace, key } = request.value;
  const nameBytes = FIXED_BYTES + textBytes(namespace) + textBytes(key);
  switch (request.case) {
    case "claim": {
      const { fingerprint, claimId, owner } = request.value;
      return nameBytes + (fingerprint?.byteLength ?? 0) + textBytes(claimId) + textBytes(owner);
    }
    case "complete":
      return nameBytes + resultBytes(request.value.result);
    case "release":
      return nameBytes + textBytes(request.value.reason);
    case "extendLease":
      return nameBytes + checkpointBytes(request.value.checkpoint);
    case "lookup":
      return nameBytes;
  }
}

function resultBytes(result: MessageInitShape<typeof ResultSchema> | undefined): number {
  if (result === undefined) return 0;
  let bytes = (result.payload?.byteLength ?? 0) + textBytes(result.contentType);
  for (const [name, value] of Object.entries(result.metadata ?? {})) {
    bytes += FIXED_BYTES + textBytes(name) + textBytes(value);
  }
  return bytes;
}

function checkpointBytes(checkpoint: MessageInitShape<typeof CheckpointSchema> | undefined): number {
  return checkpoint === undefined ? 0 : textBytes(checkpoint.name) + (checkpoint.state?.byteLength ?? 0);
}

function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : text.length * MAX_BYTES_PER_UNIT;
}
