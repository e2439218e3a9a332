import { create, type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { DurationSchema, durationMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { MAX_BATCH_ITEMS } from "../../domain/limits.ts";
import { BatchStreamRequestSchema, BatchStreamResponseSchema } from "../../gen/onceward/v1/idempotency_pb.ts";
import { batchItemError } from "../../records/batch/batch-errors.ts";
import { FailedCall, ProtocolError, REQUEST_ID_HEADER } from "../errors.ts";
import type { IncomingCall } from "../pipeline.ts";
import { frameMessage } from "../receive/read-body.ts";
import { MAX_TIMEOUT_MS, type ReceivedMessage } from "../receive/read-message.ts";
import { binaryScannerOf } from "../receive/scan-binary.ts";
import { asRefusal, StreamHead } from "./protocol.ts";

/** Fields of a request other than its items, unknown ones among them. */
const MAX_OTHER_FIELDS = 64;
/** A batch with too many items is refused by its answer, up to this number; with more, the stream ends. */
const MAX_FIELDS = 2 * MAX_BATCH_ITEMS + MAX_OTHER_FIELDS;
const TOO_MANY_FIELDS = `Received a BatchStreamRequest of more than ${MAX_FIELDS} fields.`;

/** A longer trace context is not read. */
const MAX_TRACEPARENT_BYTES = 512;

const { id: ID, timeout: TIMEOUT, traceparent: TRACEPARENT } = BatchStreamRequestSchema.field;

/** The fields of a BatchStreamRequest other than its items. */
type Envelope = ReturnType<typeof readEnvelope>;

/**
 * Reads the envelope of a batch. The items are read after authentication.
 *
 * @throws ProtocolError INVALID_ARGUMENT if the bytes are not a message, or the message has no id.
 */
export function readEnvelope(message: Buffer) {
  let id = 0;
  let timeoutMs: number | undefined;
  /** Undefined if there is no trace context, or it is too long. */
  let traceparent: string | undefined;
  try {
    const reader = new BinaryReader(message);
    for (let fields = 0; reader.pos < reader.len; fields++) {
      if (fields > MAX_FIELDS) throw new ProtocolError(Code.InvalidArgument, TOO_MANY_FIELDS);
      const [field, wireType] = reader.tag();
      if (field === ID.number && wireType === WireType.Varint) id = reader.uint32();
      else if (field === TIMEOUT.number && wireType === WireType.LengthDelimited)
        timeoutMs = Math.min(readDurationMs(reader.bytes()), MAX_TIMEOUT_MS);
      else if (field === TRACEPARENT.number && wireType === WireType.LengthDelimited)
        traceparent = readTraceparent(reader.bytes());
      else reader.skip(wireType, field);
    }
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(Code.InvalidArgument, "Received a message that is not a BatchStreamRequest.");
  }
  if (id === 0) throw new ProtocolError(Code.InvalidArgument, "id must be 1 or more.");
  return { id, timeoutMs, traceparent };
}

/** Returns undefined if the text is too long. Whether it is well-formed is decided where it is used. */
function readTraceparent(bytes: Uint8Array): string | undefined {
  return bytes.byteLength > MAX_TRACEPARENT_BYTES ? undefined : Buffer.from(bytes).toString("latin1");
}

function readDurationMs(bytes: Uint8Array): number {
  binaryScannerOf(DurationSchema).countFields(bytes, 0, bytes.byteLength, MAX_OTHER_FIELDS);
  return durationMs(fromBinary(DurationSchema, bytes));
}

/** Encodes a BatchResponse and appends the id, which makes it a BatchStreamResponse. */
export function frameAnswer(id: number, output: DescMessage, reply: Message): Buffer {
  const { number } = BatchStreamResponseSchema.field.id;
  const idField = new BinaryWriter().tag(number, WireType.Varint).uint32(id).finish();
  return frameMessage(toBinary(output, reply), idField);
}

/**
 * Encodes the answer to a batch that was refused as a whole.
 *
 * @throws the error, if it is not a FailedCall with a Refusal.
 */
export function frameRefusal(id: number, failure: unknown): Buffer {
  const { error: cause, requestId } =
    failure instanceof FailedCall ? failure : { error: failure, requestId: "" };
  const error = batchItemError(asRefusal(cause), requestId);
  const answer = create(BatchStreamResponseSchema, { id, error });
  return frameMessage(toBinary(BatchStreamResponseSchema, answer));
}

/** One message of a BatchStream, as a call of Batch. */
export class IncomingBatch extends StreamHead implements IncomingCall {
  readonly #head: StreamHead;
  readonly #message: Buffer;
  readonly timeoutMs: number | undefined;
  readonly #traceparent: string | undefined;

  /** @param head That of the stream, which its messages share. */
  constructor(head: StreamHead, message: Buffer, { timeoutMs, traceparent }: Envelope) {
    super(head.stream, head.headers, head.peer);
    this.#head = head;
    this.#message = message;
    this.timeoutMs = timeoutMs;
    this.#traceparent = traceparent;
  }

  override header(name: string): string | undefined {
    // Those of the stream are the request id and the trace context of whichever call opened it.
    if (name === "traceparent") return this.#traceparent;
    return name === "tracestate" || name === REQUEST_ID_HEADER ? undefined : super.header(name);
  }

  /** Of the stream: a listener of each message would stay until the stream closes. */
  override get signal(): AbortSignal {
    return this.#head.signal;
  }

  /** Returns the BatchStreamRequest. Its other fields are skipped as a BatchRequest's unknown fields are. */
  receive(): ReceivedMessage {
    return { bytes: this.#message, format: "binary", compression: undefined };
  }
}
