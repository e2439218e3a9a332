import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BatchRequestSchema } from "../gen/onceward/v1/idempotency_pb.ts";
import { type BatchedRequest, maxRequestBytes } from "./request-size.ts";

const text = fc.string({ unit: "grapheme", maxLength: 200 });
const bytes = fc.uint8Array({ maxLength: 300 });
const duration = fc.constant({ seconds: 315_576_000_000n, nanos: 999_999_999 });
const fencingToken = fc.constant(-1n);
const metadata = fc.dictionary(text, text, { maxKeys: 5 });

const request: fc.Arbitrary<BatchedRequest> = fc.oneof(
  fc.record({
    case: fc.constant("claim" as const),
    value: fc.record({
      namespace: text,
      key: text,
      fingerprint: bytes,
      claimId: text,
      owner: text,
      lease: duration,
      retention: duration,
      keyCreatedAt: duration,
      acceptAmbiguous: fc.boolean(),
    }),
  }),
  fc.record({
    case: fc.constant("complete" as const),
    value: fc.record({
      namespace: text,
      key: text,
      fencingToken,
      retention: duration,
      result: fc.record({ payload: bytes, contentType: text, metadata }),
    }),
  }),
  fc.record({
    case: fc.constant("release" as const),
    value: fc.record({ namespace: text, key: text, fencingToken, reason: text }),
  }),
  fc.record({
    case: fc.constant("extendLease" as const),
    value: fc.record({
      namespace: text,
      key: text,
      fencingToken,
      lease: duration,
      checkpoint: fc.record({ name: text, state: bytes }),
    }),
  }),
);

test("the bound is never below what a call adds to its batch", () => {
  fc.assert(
    fc.property(request, (item) => {
      const batch = create(BatchRequestSchema, { items: [{ request: item }] });
      expect(maxRequestBytes(item)).toBeGreaterThanOrEqual(toBinary(BatchRequestSchema, batch).byteLength);
    }),
  );
});
