import { gzipSync } from "node:zlib";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type BatchRequest,
  BatchRequestSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";

/** A request that is cheap to send and may be expensive to read. */
export interface CostlyRequest {
  readonly name: string;
  readonly format: "binary" | "json";
  /** The bytes before compression. */
  readonly bytes: Buffer;
}

/** The size of the largest request. */
const BYTES = 4 * 1024 * 1024;

/** Returns a costly request of an RPC in every known way. */
export function costlyRequests({ input }: DescMethod): readonly CostlyRequest[] {
  const ofBatch = input.typeName === BatchRequestSchema.typeName ? largestBatches() : [];
  return [...costlyBinary(input), ...COSTLY_JSON, ...costlyJsonLists(input), ...ofBatch].map((request) => ({
    ...request,
    name: `${request.name} (${request.format})`,
  }));
}

const compressed = new WeakMap<Buffer, Buffer>();

/** Returns the bytes compressed by gzip. Kept, because compression takes longer than all the rest. */
export function gzipped({ bytes }: CostlyRequest): Buffer {
  const known = compressed.get(bytes) ?? gzipSync(bytes, { level: 1 });
  compressed.set(bytes, known);
  return known;
}

function repeated(pattern: Uint8Array, bytes = BYTES): Buffer {
  return Buffer.alloc(Math.floor(bytes / pattern.byteLength) * pattern.byteLength, pattern);
}

/** A field number that no request has. */
const UNKNOWN_FIELD = 1000;
const UNKNOWN = repeated(new BinaryWriter().tag(UNKNOWN_FIELD, WireType.Varint).uint32(0).finish());
const GROUPS = repeated(Uint8Array.of(0x7b));
const NESTED_GROUPS = Buffer.concat([
  repeated(Uint8Array.of(0x7b), BYTES / 2),
  repeated(Uint8Array.of(0x7c), BYTES / 2),
]);

function costlyBinary(desc: DescMessage): readonly CostlyRequest[] {
  const format = "binary";
  return [
    { name: "unknown fields", format, bytes: UNKNOWN },
    { name: "groups that never end", format, bytes: GROUPS },
    { name: "groups within groups", format, bytes: NESTED_GROUPS },
    ...emptyFields(desc, [], new Set()),
  ];
}

/**
 * Returns the empty fields that a request can repeat: lists, maps and messages, with those of nested
 * messages, and one field of another kind.
 */
function emptyFields(
  desc: DescMessage,
  path: readonly DescField[],
  above: ReadonlySet<string>,
): readonly CostlyRequest[] {
  if (above.has(desc.typeName)) return [];
  const holders = desc.fields.filter(
    ({ fieldKind, message }) => fieldKind === "map" || message !== undefined,
  );
  const other = desc.fields.find((field) => !holders.includes(field));
  const fields = other === undefined || path.length > 0 ? holders : [other, ...holders];
  return fields.flatMap((field) => {
    const here = [...path, field];
    const name = `${here.map((each) => each.name).join(".")} with nothing in it`;
    const own: CostlyRequest = { name, format: "binary", bytes: wrapped(path, emptied(field)) };
    if (field.message === undefined) return [own];
    return [own, ...emptyFields(field.message, here, new Set([...above, desc.typeName]))];
  });
}

const NUMBERED_EMPTY = new Map<string, Buffer>();

function emptied({ number, message, fieldKind, scalar }: DescField): Buffer {
  const isText = scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
  const holds = message !== undefined || fieldKind === "map" || isText;
  const wireType = holds ? WireType.LengthDelimited : WireType.Varint;
  const name = `${number} ${wireType}`;
  // The number zero is the same byte as the length zero.
  const known =
    NUMBERED_EMPTY.get(name) ?? repeated(new BinaryWriter().tag(number, wireType).uint32(0).finish());
  NUMBERED_EMPTY.set(name, known);
  return known;
}

function wrapped(path: readonly DescField[], bytes: Buffer): Buffer {
  if (path.length === 0) return bytes;
  return Buffer.from(
    path.reduceRight<Uint8Array>(
      (inner, { number }) => new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(inner).finish(),
      bytes,
    ),
  );
}

function jsonRequest(name: string, text: string): CostlyRequest {
  return { name, format: "json", bytes: Buffer.from(text) };
}

function list(element: string, bytes = BYTES): string {
  return `[${`${element},`.repeat(bytes / (element.length + 1) - 1)}${element}]`;
}

const COSTLY_JSON: readonly CostlyRequest[] = [
  jsonRequest("lists within lists", "[".repeat(BYTES)),
  jsonRequest("objects within objects", '{"a":'.repeat(BYTES / 5)),
  jsonRequest("an unknown list", `{"x":${list("0")}}`),
  jsonRequest("unknown members", `{${Array.from({ length: BYTES / 12 }, (_, i) => `"x${i}":0`).join()}}`),
  jsonRequest("a number of many digits", `{"fencingToken":${"9".repeat(BYTES)}}`),
  jsonRequest("a text of many digits", `{"fencingToken":"${"9".repeat(BYTES / 2 - 100)}"}`),
  jsonRequest("a text of many digits, within 64 KiB", `{"fencingToken":"${"9".repeat(64_000)}"}`),
  jsonRequest("nothing but spaces", " ".repeat(BYTES)),
  jsonRequest("a text of nothing but escapes", `{"key":"${"\\u0000".repeat(BYTES / 6)}"}`),
];

function costlyJsonLists(desc: DescMessage): readonly CostlyRequest[] {
  return desc.fields
    .filter(({ fieldKind }) => fieldKind === "list")
    .map(({ jsonName, message }) =>
      jsonRequest(
        `${jsonName} with nothing in them`,
        `{"${jsonName}":${list(message === undefined ? '""' : "{}")}}`,
      ),
    );
}

function largestBatches(): readonly CostlyRequest[] {
  return [...largestBinaryBatches(), ...largestJsonBatches()];
}

function largestBinaryBatches(): readonly CostlyRequest[] {
  return Object.entries({
    "1,000 results of 4 KB": completions(1000, 4000, 0),
    "3 results of 1 MiB": completions(3, 1024 * 1024, 0),
    "1,000 results with 64 entries of metadata": completions(1000, 0, 64),
  }).map(([name, batch]) => ({
    name,
    format: "binary",
    bytes: Buffer.from(toBinary(BatchRequestSchema, batch)),
  }));
}

function largestJsonBatches(): readonly CostlyRequest[] {
  return Object.entries({
    "1,000 results of 1 KB": completions(1000, 1000, 0),
    "a result of 1 MiB": completions(1, 1024 * 1024, 0),
    "1,000 results with 8 entries of metadata": completions(1000, 0, 8),
  }).map(([name, batch]) => jsonRequest(name, toJsonString(BatchRequestSchema, batch)));
}

function completions(count: number, payloadBytes: number, entries: number): BatchRequest {
  const metadata = Object.fromEntries(
    Array.from({ length: entries }, (_, i) => [`name-${i}`, "v".repeat(40)]),
  );
  const result = { kind: Result_Kind.SUCCESS, payload: new Uint8Array(payloadBytes), metadata };
  const items = Array.from({ length: count }, (_, i) => ({
    request: {
      case: "complete",
      value: { namespace: "charges", key: `key-${i}`, fencingToken: 1n, result },
    } as const,
  }));
  return create(BatchRequestSchema, { items });
}
