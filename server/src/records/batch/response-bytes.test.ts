import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/onceward/v1/errors_pb.ts";
import {
  BatchResponseItemSchema,
  BatchResponseSchema,
  type ClaimResponseSchema,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import {
  CheckpointSchema,
  Record_State,
  RecordSchema,
  ResultSchema,
} from "../../gen/onceward/v1/record_pb.ts";
import { responseItemBytes } from "./response-bytes.ts";

/** Text of any length up to a limit in bytes; most runs are at the limit, where a bound is tight. */
function text(maxBytes: number): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constant("x".repeat(maxBytes)),
    fc.constant("\u20ac".repeat(Math.floor(maxBytes / 3))),
    fc.string({ unit: "binary", maxLength: Math.floor(maxBytes / 4) }),
  );
}

function bytes(maxBytes: number): fc.Arbitrary<Uint8Array> {
  return fc.nat(maxBytes).map((length) => new Uint8Array(length));
}

/** The largest that the wire has: ten bytes of seconds, five of nanos. */
const timestamp = fc.constant(create(TimestampSchema, { seconds: -1n, nanos: -1 }));
const duration = fc.constant(create(DurationSchema, { seconds: -1n, nanos: -1 }));
const token = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });
const attempt = fc.nat();

const result = fc
  .record({
    kind: fc.constantFrom(1, 2),
    payload: bytes(300_000),
    contentType: text(255),
    metadata: fc.dictionary(text(128), text(300), { maxKeys: 64 }),
  })
  .map((init) => create(ResultSchema, init));
const checkpoint = fc
  .record({ name: text(128), state: bytes(16 * 1024) })
  .map((init) => create(CheckpointSchema, init));
const optionalCheckpoint = fc.option(checkpoint, { nil: undefined });

type ClaimOutcome = NonNullable<MessageInitShape<typeof ClaimResponseSchema>["outcome"]>;

const claimOutcome: fc.Arbitrary<ClaimOutcome> = fc.oneof(
  fc
    .record({
      fencingToken: token,
      leaseExpiresAt: timestamp,
      leaseRemaining: duration,
      attempt,
      firstClaimedAt: timestamp,
      checkpoint: optionalCheckpoint,
    })
    .map(({ checkpoint: saved, ...rest }) => ({
      case: "claimed" as const,
      value: { ...rest, ...(saved && { checkpoint: saved }) },
    })),
  fc
    .record({ owner: text(128), attempt, leaseExpiresAt: timestamp, retryAfter: duration })
    .map((value) => ({ case: "inProgress" as const, value })),
  fc
    .record({ result, resultExpired: fc.boolean(), completedAt: timestamp })
    .map((value) => ({ case: "completed" as const, value })),
  fc
    .record({ owner: text(128), attempt, leaseExpiredAt: timestamp, checkpoint })
    .map((value) => ({ case: "ambiguous" as const, value })),
);

const record = fc
  .record({
    namespace: text(63),
    key: text(255),
    state: fc.constant(Record_State.COMPLETED),
    fencingToken: token,
    attempt,
    owner: text(128),
    fingerprint: fc.constant(new Uint8Array(32)),
    firstClaimedAt: timestamp,
    claimedAt: timestamp,
    leaseExpiresAt: timestamp,
    completedAt: timestamp,
    releasedAt: timestamp,
    releaseReason: text(1024),
    result,
    resultExpired: fc.boolean(),
    checkpoint,
    resultExpiresAt: timestamp,
    expiresAt: timestamp,
  })
  .map((init) => create(RecordSchema, init));

const violation = fc.record({ field: text(30), description: text(200) });
const error = fc.record({
  code: fc.nat(16),
  reason: fc.constant(ErrorReason.INVALID_REQUEST),
  message: text(3000),
  metadata: fc.constantFrom<Record<string, string>>(
    {},
    { request_id: "r".repeat(64) },
    { limit_bytes: "1048576", actual_bytes: "4194304" },
    { effect: "unknown" },
  ),
  fieldViolations: fc.array(violation, { maxLength: 12 }),
  retryDelay: duration,
});

type Response = NonNullable<MessageInitShape<typeof BatchResponseItemSchema>["response"]>;

const response: fc.Arbitrary<Response> = fc.oneof(
  fc
    .record({ outcome: claimOutcome, expiresAt: timestamp, serverTime: timestamp })
    .map((value) => ({ case: "claim" as const, value })),
  fc
    .record({ completedAt: timestamp, expiresAt: timestamp, alreadyCompleted: fc.boolean() })
    .map((value) => ({ case: "complete" as const, value })),
  fc.record({ expiresAt: timestamp }).map((value) => ({ case: "release" as const, value })),
  fc
    .record({ leaseExpiresAt: timestamp, leaseRemaining: duration, expiresAt: timestamp })
    .map((value) => ({ case: "extendLease" as const, value })),
  timestamp.map((serverTime) => ({ case: "lookup" as const, value: { serverTime } })),
  fc.record({ record, serverTime: timestamp }).map((value) => ({ case: "lookup" as const, value })),
  error.map((value) => ({ case: "error" as const, value })),
);

test("the encoded size of an item never exceeds its computed bound", () => {
  fc.assert(
    fc.property(response, (init) => {
      const item = create(BatchResponseItemSchema, { response: init });
      const onTheWire = toBinary(
        BatchResponseSchema,
        create(BatchResponseSchema, { items: [item] }),
      ).byteLength;
      expect(onTheWire).toBeLessThanOrEqual(responseItemBytes(item));
    }),
    { numRuns: 300 },
  );
});

test("the bound of an item without a response is small", () => {
  expect(responseItemBytes(create(BatchResponseItemSchema))).toBeGreaterThanOrEqual(2);
});
