import {
  create,
  createFileRegistry,
  type DescMessage,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_struct,
  file_google_protobuf_wrappers,
  StructSchema,
  TypeSchema,
  ValueSchema,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  BatchRequestSchema,
  BatchResponseSchema,
  ClaimRequestSchema,
  LookupRequestSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { encodeMessage } from "./message-encoder.ts";

const HEAD = Uint8Array.of(1, 2, 3);

function encoded<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): Buffer {
  const bytes = Buffer.from(encodeMessage(HEAD, desc, init));
  expect(bytes.subarray(0, HEAD.byteLength)).toEqual(Buffer.from(HEAD));
  return bytes.subarray(HEAD.byteLength);
}

function encodedByLibrary<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): Buffer {
  return Buffer.from(toBinary(desc, create(desc, init)));
}

const text = fc.string({ unit: "binary", maxLength: 200 });
const bytes = fc.uint8Array({ maxLength: 300 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const int32 = fc.integer();

/** Whatever part of it a caller may set. */
function some<Value>(fields: { [Name in keyof Value]: fc.Arbitrary<Value[Name]> }) {
  return fc.record(fields, { requiredKeys: [] });
}

function item<Case extends string, Value>(name: Case, value: fc.Arbitrary<Value>) {
  return fc.record({ request: fc.record({ case: fc.constant(name), value }) });
}

const name = { namespace: text, key: text };
const held = { ...name, fencingToken: int64 };
const duration = some({ seconds: int64, nanos: int32 });
const result = some({ kind: int32, payload: bytes, contentType: text, metadata: fc.dictionary(text, text) });
const claim = some({
  ...name,
  fingerprint: bytes,
  claimId: text,
  lease: duration,
  retention: duration,
  owner: text,
  acceptAmbiguous: fc.boolean(),
});
const items = fc.array(
  fc.oneof(
    item("claim", claim),
    item("complete", some({ ...held, result, retention: duration })),
    item("release", some({ ...held, reason: text })),
    item("extendLease", some({ ...held, lease: duration, checkpoint: some({ name: text, state: bytes }) })),
    item("lookup", some(name)),
    fc.constant({}),
  ),
);

test("a batch is encoded as the library encodes it", () => {
  fc.assert(
    fc.property(items, (items) => {
      const batch = { items } as MessageInitShape<typeof BatchRequestSchema>;
      expect(encoded(BatchRequestSchema, batch)).toEqual(encodedByLibrary(BatchRequestSchema, batch));
    }),
  );
});

test("a batch of messages is encoded as one of what they are made from", () => {
  fc.assert(
    fc.property(items, (items) => {
      const batch = { items } as MessageInitShape<typeof BatchRequestSchema>;
      const made = encoded(BatchRequestSchema, create(BatchRequestSchema, batch));
      expect(made).toEqual(encodedByLibrary(BatchRequestSchema, batch));
    }),
  );
});

const tree = { structValue: { a: [1, null, { b: true }] } };
const field = { name: "a", defaultValue: "", number: 0 };
test.each<[string, DescMessage, object]>([
  [
    "lists of messages and of texts, and enums",
    TypeSchema,
    { oneofs: ["a", ""], syntax: 1, fields: [{}, field] },
  ],
  [
    "a message that JavaScript has another form for",
    ValueSchema,
    { kind: { case: "structValue", value: {} } },
  ],
  ["a map of messages", StructSchema, { fields: { a: { kind: { case: "numberValue", value: -0 } }, b: {} } }],
  ["a oneof of values", ValueSchema, { kind: { case: "stringValue", value: "" } }],
  ["fields that are set to what others have unset", FieldDescriptorProtoSchema, field],
  ["a case that nobody knows", BatchRequestSchema, { items: [{ request: { case: "other", value: {} } }] }],
  ["a case without a value", BatchRequestSchema, { items: [{ request: { case: "lookup" } }] }],
  ["nothing where something may be", ClaimRequestSchema, { key: null, lease: undefined, fingerprint: null }],
  ["bytes as numbers", ClaimRequestSchema, { fingerprint: [1, 2, 255] }],
  ["a text that is no Unicode", ClaimRequestSchema, { key: `\ud800${"k".repeat(50)}` }],
  ["a number for a bigint", BatchResponseSchema, { items: [outcome({ fencingToken: 7 })] }],
  ["a oneof in a oneof", BatchResponseSchema, { items: [outcome({ attempt: -1, checkpoint: tree })] }],
])("%s: as the library encodes it", (_, desc, init) => {
  const given = init as MessageInitShape<DescMessage>;
  expect(encoded(desc, given)).toEqual(encodedByLibrary(desc, given));
});

test("what JavaScript has in other forms than messages is encoded as the library encodes it", () => {
  const messages = [
    { name: "T", field: [fieldOf(1, "struct", "Struct"), fieldOf(2, "bytes", "BytesValue")] },
  ];
  const dependency = [file_google_protobuf_struct, file_google_protobuf_wrappers].map(
    ({ proto }) => proto.name,
  );
  const file = create(FileDescriptorProtoSchema, {
    name: "t",
    syntax: "proto3",
    dependency,
    messageType: messages,
  });
  const registry = createFileRegistry(file, (name) =>
    name.endsWith("struct.proto") ? file_google_protobuf_struct : file_google_protobuf_wrappers,
  );
  const desc = registry.getMessage("T");
  if (desc === undefined) throw new Error("no T");
  const message = { struct: { a: 1 }, bytes: Uint8Array.of(1) };
  expect(encoded(desc, message)).toEqual(encodedByLibrary(desc, message));
});

function fieldOf(
  number: number,
  name: string,
  type: string,
): MessageInitShape<typeof FieldDescriptorProtoSchema> {
  return {
    name,
    number,
    label: FieldDescriptorProto_Label.OPTIONAL,
    type: FieldDescriptorProto_Type.MESSAGE,
    typeName: `.google.protobuf.${type}`,
  };
}

function outcome(value: object): object {
  return { response: { case: "claim", value: { outcome: { case: "claimed", value } } } };
}

test("fields that a message has and nobody here knows go along", () => {
  const $unknown = [{ no: 99, wireType: 2, data: Uint8Array.of(1, 65) }];
  const lookup = { ...create(LookupRequestSchema, { key: "order-1" }), $unknown };
  const batch = { items: [{ request: { case: "lookup" as const, value: lookup } }] };
  const bytes = encoded(BatchRequestSchema, batch);
  expect(bytes).toEqual(encodedByLibrary(BatchRequestSchema, batch));
  // Field 99, of a length.
  expect(bytes.includes(Buffer.of(0x9a, 0x06, 1, 65))).toBe(true);
});

describe("what the library refuses", () => {
  const wrong: [string, object][] = [
    ["a lease out of range", { key: "order-1", lease: { seconds: 2n ** 64n } }],
    ["a lease that is no message", { key: "order-1", lease: 5 }],
    ["a fingerprint that is no bytes", { key: "order-1", fingerprint: "abc" }],
  ];

  test.each(wrong)("%s is refused in its words, and the next message is whole", (_, claim) => {
    const refusal = thrownBy(() => encodedByLibrary(ClaimRequestSchema, claim));
    expect(thrownBy(() => encodeMessage(HEAD, ClaimRequestSchema, claim))).toBe(refusal);
    const next = { key: "order-2", claimId: "c" };
    expect(encoded(ClaimRequestSchema, next)).toEqual(encodedByLibrary(ClaimRequestSchema, next));
  });
});

function thrownBy(encode: () => unknown): string {
  try {
    encode();
  } catch (error) {
    return String(error);
  }
  throw new Error("nothing was thrown");
}

test("a message is its caller's: the next one does not change it, whatever their sizes", () => {
  const sizes = [10, 1_000_000, 0, 100, 2_000_000, 20];
  const claims = sizes.map((size) => ({ key: "k", fingerprint: new Uint8Array(size).fill(size) }));
  const all = claims.map((claim) => encoded(ClaimRequestSchema, claim));
  expect(all).toEqual(claims.map((claim) => encodedByLibrary(ClaimRequestSchema, claim)));
});
