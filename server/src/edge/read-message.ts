import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type DescMethodUnary, fromBinary, fromJsonString, type Message } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Answer } from "../calls/call.ts";
import {
  type BatchRequestItem,
  BatchRequestItemSchema,
  BatchRequestSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { type Compression, inflate } from "./compression.ts";
import { malformed, tooLarge } from "./errors.ts";
import { messageLimits } from "./message-limits.ts";
import { binaryScannerOf } from "./scan-binary.ts";
import { scanJson } from "./scan-json.ts";

/** A message as it arrived, neither decompressed nor parsed. */
export interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly format: "binary" | "json";
  /** Undefined if the message is not compressed. */
  readonly compression: Compression | undefined;
}

/**
 * Decompresses and parses the request of an authenticated caller. Each step limits the next one: size,
 * decompressed size, number of fields, and then the fields. Unknown fields are dropped.
 *
 * @param onInflated Called with the decompressed size; may throw to refuse the message.
 * @throws Refusal INVALID_REQUEST if the bytes are no message of the method, or exceed one of
 *   `messageLimits`.
 */
export function readMessage(
  method: DescMethodUnary,
  { bytes, format, compression }: ReceivedMessage,
  onInflated: (messageBytes: number) => void,
): Answer<Message> {
  const limits = messageLimits(method);
  const { maxBytes } = limits[format];
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes, bytes.byteLength);
  const read = (plain: Buffer): Answer<Message> => {
    onInflated(plain.byteLength);
    return format === "json"
      ? readJson(method, plain, limits.json.maxValues)
      : readBinary(method, plain, limits.binary.maxFields);
  };
  if (compression === undefined) return read(bytes);
  return inflate(bytes, compression, maxBytes).then(read);
}

/** Parsing so many fields takes a few milliseconds. */
const FIELDS_PER_TURN = 8192;

function readBinary(method: DescMethodUnary, bytes: Buffer, maxFields: number): Answer<Message> {
  const fields = binaryScannerOf(method.input).countFields(bytes, 0, bytes.byteLength, maxFields);
  if (fields > FIELDS_PER_TURN && method.input === BatchRequestSchema) return readLargeBatch(bytes);
  return decode(() => fromBinary(method.input, bytes, WITHOUT_UNKNOWN));
}

const WITHOUT_UNKNOWN = { readUnknownFields: false };

/** Parses a batch with very many fields, in several turns of the event loop. */
async function readLargeBatch(bytes: Buffer): Promise<Message> {
  const scanner = binaryScannerOf(BatchRequestItemSchema);
  const items: BatchRequestItem[] = [];
  const reader = new BinaryReader(bytes);
  let fields = 0;
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (number !== BatchRequestSchema.field.items.number || wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    const item = reader.bytes();
    fields += scanner.countFields(item, 0, item.byteLength, FIELDS_PER_TURN);
    items.push(decode(() => fromBinary(BatchRequestItemSchema, item, WITHOUT_UNKNOWN)));
    if (fields < FIELDS_PER_TURN) continue;
    fields = 0;
    await nextTurn();
  }
  return create(BatchRequestSchema, { items });
}

/** Refuses bytes that aren't UTF-8: decoded as U+FFFD, different keys would become equal. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

function readJson(method: DescMethodUnary, bytes: Buffer, maxValues: number): Message {
  scanJson(bytes, maxValues);
  return decode(() => fromJsonString(method.input, UTF8.decode(bytes), { ignoreUnknownFields: true }));
}

function decode<Made>(work: () => Made): Made {
  try {
    return work();
  } catch (cause) {
    throw malformed("is not a message of the request's type", cause);
  }
}
