import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, test } from "vitest";
import {
  BatchRequestSchema,
  ClaimRequestSchema,
  CompleteRequestSchema,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { binaryScannerOf } from "./scan-binary.ts";

const MAX_FIELDS = 10_000;

function scan(
  desc: Parameters<typeof binaryScannerOf>[0],
  bytes: Uint8Array,
  maxFields = MAX_FIELDS,
): number {
  return binaryScannerOf(desc).countFields(bytes, 0, bytes.byteLength, maxFields);
}

const claim: MessageInitShape<typeof ClaimRequestSchema> = {
  namespace: "charges",
  key: "k".repeat(200),
  fingerprint: new Uint8Array(32),
  lease: { seconds: 30n, nanos: 1 },
  acceptAmbiguous: true,
};

function fieldAgain(number: number, times: number): Uint8Array {
  const one = new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(0).finish();
  return Buffer.alloc(one.byteLength * times, one);
}

test("fields are counted in all messages within each other", () => {
  expect(scan(ClaimRequestSchema, toBinary(ClaimRequestSchema, create(ClaimRequestSchema, claim)))).toBe(7);
  const items = [1, 2].map(() => ({ request: { case: "claim", value: claim } as const }));
  const batch = toBinary(BatchRequestSchema, create(BatchRequestSchema, { items }));
  expect(scan(BatchRequestSchema, batch)).toBe(2 * (1 + 1 + 7));
});

test("metadata counts with its names and values", () => {
  const result = { metadata: { a: "1", b: "2" } };
  const request = toBinary(CompleteRequestSchema, create(CompleteRequestSchema, { result }));
  expect(scan(CompleteRequestSchema, request)).toBe(1 + 2 * 3);
});

test("an empty message has none, and fields that a newer client knows are counted", () => {
  expect(scan(ClaimRequestSchema, new Uint8Array())).toBe(0);
  expect(scan(ClaimRequestSchema, fieldAgain(2000, 64))).toBe(64);
});

describe("what is refused", () => {
  const within = (bytes: Uint8Array) =>
    new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(bytes).finish();

  test.each<[string, Parameters<typeof binaryScannerOf>[0], Uint8Array]>([
    ["more than 64 fields of one message", ClaimRequestSchema, fieldAgain(2000, 65)],
    ["a field that comes 65 times", ClaimRequestSchema, fieldAgain(2, 65)],
    ["more than 1,024 elements", BatchRequestSchema, fieldAgain(1, 1025)],
    ["too many fields within a message", BatchRequestSchema, within(fieldAgain(2000, 65))],
    ["a group", ClaimRequestSchema, Uint8Array.of(0x7b, 0x7c)],
    ["a field with the number zero", ClaimRequestSchema, Uint8Array.of(0x00, 0x01)],
    ["a text that is said to be a number", ClaimRequestSchema, Uint8Array.of(0x10, 0x01)],
    ["a message that is said to be a number", BatchRequestSchema, Uint8Array.of(0x08, 0x01)],
    ["a length beyond the end", ClaimRequestSchema, Uint8Array.of(0x12, 0x02, 0x61)],
    [
      "a length beyond the message that it is in",
      BatchRequestSchema,
      Uint8Array.of(0x0a, 0x02, 0x0a, 0x05, 0, 0, 0, 0, 0),
    ],
    ["a number that ends half-way", ClaimRequestSchema, Uint8Array.of(0x48, 0xff)],
    ["a number of eleven bytes", ClaimRequestSchema, Uint8Array.of(0x48, ...Array(10).fill(0xff), 1)],
    ["eight bytes of which there are seven", ClaimRequestSchema, Uint8Array.of(0x79, 1, 2, 3, 4, 5, 6, 7)],
  ])("%s", (_name, desc, bytes) => {
    expect(() => scan(desc, bytes)).toThrow(expect.objectContaining({ reason: "INVALID_REQUEST" }));
  });

  test("more fields in all than there may be", () => {
    const claimed = toBinary(ClaimRequestSchema, create(ClaimRequestSchema, claim));
    expect(() => scan(ClaimRequestSchema, claimed, 6)).toThrow("more than 6 fields");
    const metadata = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`name-${i}`, ""]));
    const item = (copies: number) => ({
      request: { case: "complete", value: { result: { metadata: copies > 0 ? metadata : {} } } } as const,
    });
    const batch = create(BatchRequestSchema, { items: Array.from({ length: 4 }, () => item(1)) });
    const bytes = toBinary(BatchRequestSchema, batch);
    expect(scan(BatchRequestSchema, bytes, 20_000)).toBeGreaterThan(10_000);
    expect(() => scan(BatchRequestSchema, bytes, 10_000)).toThrow("fields in all");
  });

  test("a list is named", () => {
    expect(() => scan(BatchRequestSchema, fieldAgain(1, 1025))).toThrow(
      expect.objectContaining({ violations: [expect.objectContaining({ field: "items" })] }),
    );
  });
});
