import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { DurationSchema, durationMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { batchItemError } from "../../claims/batch-errors.ts";
import { MAX_BATCH_ITEMS } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import { BatchStreamRequestSchema, BatchStreamResponseSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import { frameMessage, MessageRefused } from "../grpc-messages.ts";
import { binaryScannerOf } from "../scan-binary.ts";
import { MAX_TIMEOUT_MS } from "../timeouts.ts";

/** What a BatchStreamRequest says beside its items. */
interface Envelope {
  readonly id: number;
  readonly timeoutMs: number | undefined;
}

/** Beside the items; a field that the server does not know counts, too. */
const MAX_OTHER_FIELDS = 64;
/** More items than a batch may have are refused as the batch's answer, up to this. */
const MAX_FIELDS = 2 * MAX_BATCH_ITEMS + MAX_OTHER_FIELDS;
const TOO_MANY_FIELDS = `Received a BatchStreamRequest of more than ${MAX_FIELDS} fields.`;

const { id: ID, timeout: TIMEOUT } = BatchStreamRequestSchema.field;

/**
 * Reads what stands around the items; they are read after authentication.
 *
 * @throws MessageRefused INVALID_ARGUMENT if it is no message, or has no id.
 */
export function readEnvelope(message: Buffer): Envelope {
  let id = 0;
  let timeoutMs: number | undefined;
  try {
    const reader = new BinaryReader(message);
    for (let fields = 0; reader.pos < reader.len; fields++) {
      if (fields > MAX_FIELDS) throw new MessageRefused(Code.InvalidArgument, TOO_MANY_FIELDS);
      const [field, wireType] = reader.tag();
      if (field === ID.number && wireType === WireType.Varint) id = reader.uint32();
      else if (field === TIMEOUT.number && wireType === WireType.LengthDelimited)
        timeoutMs = Math.min(readDurationMs(reader.bytes()), MAX_TIMEOUT_MS);
      else reader.skip(wireType, field);
    }
  } catch (error) {
    if (error instanceof MessageRefused) throw error;
    throw new MessageRefused(Code.InvalidArgument, "Received what is no BatchStreamRequest.");
  }
  if (id === 0) throw new MessageRefused(Code.InvalidArgument, "id must be 1 or more.");
  return { id, timeoutMs };
}

function readDurationMs(bytes: Uint8Array): number {
  binaryScannerOf(DurationSchema).countFields(bytes, 0, bytes.byteLength, MAX_OTHER_FIELDS);
  return durationMs(fromBinary(DurationSchema, bytes));
}

/** A BatchResponse, with what makes it a BatchStreamResponse behind it: the id. */
export function frameAnswer(id: number, output: DescMessage, reply: Message): Buffer {
  const { number } = BatchStreamResponseSchema.field.id;
  const named = new BinaryWriter().tag(number, WireType.Varint).uint32(id).finish();
  return frameMessage(toBinary(output, reply), named);
}

/**
 * What a batch is answered with that was refused as a whole.
 *
 * @throws the error, if it is no refusal.
 */
export function frameRefusal(id: number, error: unknown): Buffer {
  if (!(error instanceof Refusal)) throw error;
  const answer = create(BatchStreamResponseSchema, { id, error: batchItemError(error) });
  return frameMessage(toBinary(BatchStreamResponseSchema, answer));
}
