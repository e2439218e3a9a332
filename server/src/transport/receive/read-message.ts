import type { IncomingHttpHeaders } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  create,
  type DescMethod,
  type DescMethodUnary,
  fromBinary,
  fromJsonString,
  type Message,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { Answer } from "../../access/call.ts";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { invalidRequest } from "../../domain/refusal.ts";
import {
  type BatchRequestItem,
  BatchRequestItemSchema,
  BatchRequestSchema,
  IdempotencyService,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { TenantAdminService } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { malformed, tooLarge } from "../errors.ts";
import { type Compression, inflate } from "./compression.ts";
import { explainJson } from "./explain-json.ts";
import { binaryScannerOf, MAX_FIELDS_IN_ALL } from "./scan-binary.ts";
import { scanJson } from "./scan-json.ts";

/** The largest decompressed message of a method. Reading one takes less than 50 ms of the event loop. */
export interface MessageLimits {
  readonly binary: { readonly maxBytes: number; readonly maxFields: number };
  /** JSON takes several times as long to read as binary. */
  readonly json: { readonly maxBytes: number; readonly maxValues: number };
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** More than twice the size of all fields at their longest, in JSON with each character escaped. */
const SMALL: MessageLimits = {
  binary: { maxBytes: 64 * KIB, maxFields: MAX_FIELDS_IN_ALL },
  json: { maxBytes: 64 * KIB, maxValues: 4096 },
};

/** For a result of 1 MiB, in base64 in JSON, and 64 entries of metadata, which take up to 270 KiB. */
const WITH_RESULT: MessageLimits = {
  binary: { maxBytes: 2 * MIB, maxFields: MAX_FIELDS_IN_ALL },
  json: { maxBytes: 2 * MIB, maxValues: 4096 },
};

/**
 * 1,000 items with 64 entries of metadata each have 210,000 fields; in JSON, 1,000 items may have 16 values
 * each.
 */
const BATCH: MessageLimits = {
  binary: { maxBytes: MAX_MESSAGE_BYTES, maxFields: 256 * KIB },
  json: { maxBytes: 2 * MIB, maxValues: 16 * KIB },
};

const OTHERS: ReadonlyMap<DescMethod, MessageLimits> = new Map<DescMethod, MessageLimits>([
  [IdempotencyService.method.batch, BATCH],
  [IdempotencyService.method.complete, WITH_RESULT],
  [TenantAdminService.method.resolveRecord, WITH_RESULT],
  [TenantAdminService.method.resolveAmbiguousRecords, WITH_RESULT],
]);

/** Returns the limits of a method's request. */
export function messageLimits(method: DescMethod): MessageLimits {
  return OTHERS.get(method) ?? SMALL;
}

/** A message as it arrived, neither decompressed nor parsed. */
export interface ReceivedMessage {
  readonly bytes: Buffer;
  readonly format: "binary" | "json";
  /** Undefined if the message is not compressed. */
  readonly compression: Compression | undefined;
}

/**
 * Decompresses and parses the request of an authenticated caller. Each step limits the next one: size,
 * decompressed size, number of fields, and then the fields. Unknown fields are dropped, and refused in JSON.
 *
 * @param onInflated Called with the decompressed size; may throw to refuse the message.
 * @throws Refusal INVALID_REQUEST if the bytes are not a message of the method, or exceed one of
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
  const text = decode(() => UTF8.decode(bytes));
  try {
    // A misspelt name that is ignored would turn off what it asks for, such as the comparison of fingerprints.
    return fromJsonString(method.input, text, { ignoreUnknownFields: false });
  } catch (cause) {
    throw explainJson(method.input, text, cause);
  }
}

function decode<Made>(work: () => Made): Made {
  try {
    return work();
  } catch (cause) {
    throw malformed("is not a message of the request's type", cause);
  }
}

/** The header in which a timeout passes connect-node unseen. */
export const TIMEOUT_HEADER = "onceward-timeout";

/**
 * Renames a protocol's timeout header, so that the pipeline enforces all deadlines: connect-node lets calls
 * that have already expired reach their handlers (decisions/0002).
 *
 * `grpc-timeout` is 1-8 digits and a unit (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md),
 * `connect-timeout-ms` 1-10 digits (https://connectrpc.com/docs/protocol).
 */
export function takeTimeoutHeader(headers: IncomingHttpHeaders): void {
  const grpc = headers["grpc-timeout"];
  const connect = headers["connect-timeout-ms"];
  delete headers["grpc-timeout"];
  delete headers["connect-timeout-ms"];
  if (typeof grpc === "string") headers[TIMEOUT_HEADER] = grpc;
  else if (typeof connect === "string") headers[TIMEOUT_HEADER] = `${connect}m`;
}

const FORMAT = /^(\d{1,10})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};
/** Longer than any call takes; a timer of Node is limited to 24 days. */
export const MAX_TIMEOUT_MS = 10 * 60_000;

/**
 * Parses the caller's timeout, in milliseconds, clamped to ten minutes; returns undefined if there is none.
 *
 * @throws Refusal INVALID_REQUEST if the header is malformed.
 */
export function parseTimeoutMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const [, digits, unit = ""] = FORMAT.exec(header) ?? [];
  const unitMs = UNIT_MS[unit];
  if (digits === undefined || unitMs === undefined)
    throw invalidRequest("timeout", "must be digits and, for gRPC, a unit of H, M, S, m, u or n");
  return Math.min(Number(digits) * unitMs, MAX_TIMEOUT_MS);
}
