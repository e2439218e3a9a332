import type { ClientHttp2Session } from "node:http2";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  BatchRequestSchema,
  ClaimRequestSchema,
  CompleteRequestSchema,
  ExtendLeaseRequestSchema,
  LookupRequestSchema,
  ReleaseRequestSchema,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { startTarget, type Target } from "../helpers/hostility.ts";
import { callRaw, connectHttp2, frameOf, grpcHeaders } from "../helpers/raw-grpc.ts";
import { post } from "../helpers/raw-http.ts";

/** What a request may be answered with, whatever is in it; INTERNAL, UNKNOWN and silence are none of these. */
const ANSWERS = [
  "OK",
  "InvalidArgument",
  "FailedPrecondition",
  "Aborted",
  "NotFound",
  "ResourceExhausted",
  // A key that another call of the same run holds for a moment.
  "Unavailable",
];
const RUNS = 150;

const INT64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
/** Sensible and senseless values of each kind, often enough sensible that a request gets anywhere. */
const namespace = fc.oneof(fc.constantFrom("charges", "a"), fc.string({ unit: "binary" }));
const key = fc.oneof(fc.constantFrom("k1", "k2"), fc.string({ unit: "binary", maxLength: 300 }));
const text = fc.oneof(fc.constant("ok"), fc.string({ unit: "binary", maxLength: 300 }));
const bytes = fc.uint8Array({ maxLength: 100 });
const token = fc.oneof(fc.bigInt({ min: 1n, max: 100n }), fc.bigInt(INT64));
const nanos = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const seconds = fc.oneof(fc.constantFrom(0n, 1n, 30n, 60n, 3600n), fc.bigInt(INT64));
const duration = fc.option(fc.record({ seconds, nanos: fc.oneof(fc.constant(0), nanos) }), {
  nil: undefined,
});
const noWait = fc.constant(undefined);
const metadata = fc.dictionary(text, text, { maxKeys: 3 });
const kind = fc.oneof(fc.constantFrom(1, 2), nanos);
const contentType = text;
const result = fc.option(fc.record({ kind, payload: bytes, contentType, metadata }), { nil: undefined });
const checkpoint = fc.option(fc.record({ name: text, state: bytes }), { nil: undefined });
const id = { namespace, key };
const fingerprint = fc.oneof(fc.constant(new Uint8Array(32)), bytes);

const CLAIM = {
  ...id,
  fingerprint,
  claimId: text,
  lease: duration,
  retention: duration,
  owner: text,
  acceptAmbiguous: fc.boolean(),
};
const claim = fc.record({ ...CLAIM, wait: noWait });
const complete = fc.record({ ...id, fencingToken: token, result, retention: duration });
const release = fc.record({ ...id, fencingToken: token, reason: text });
const extendLease = fc.record({ ...id, fencingToken: token, lease: duration, checkpoint });
const lookup = fc.record(id);
const item = fc.oneof(
  fc.constant({ request: { case: undefined } }),
  ...Object.entries({ claim, complete, release, extendLease, lookup }).map(([name, value]) =>
    value.map((request) => ({ request: { case: name, value: request } })),
  ),
);

type Requests = readonly [method: string, schema: DescMessage, request: fc.Arbitrary<unknown>];

const METHODS: readonly Requests[] = [
  ["Claim", ClaimRequestSchema, claim],
  ["Complete", CompleteRequestSchema, complete],
  ["Release", ReleaseRequestSchema, release],
  ["ExtendLease", ExtendLeaseRequestSchema, extendLease],
  ["Lookup", LookupRequestSchema, lookup],
  ["Batch", BatchRequestSchema, fc.record({ items: fc.array(item, { maxLength: 5 }) })],
];

let target: Target;
let session: ClientHttp2Session;

beforeAll(async () => {
  target = await startTarget();
  session = await connectHttp2(target.server.grpcPort);
});

afterAll(async () => {
  session?.destroy();
  await target?.end();
});

/** Sends the same bytes to both ports. */
async function codesOf(method: string, message: Uint8Array): Promise<readonly string[]> {
  const { server, tenant } = target;
  const native = await callRaw(session, grpcHeaders(method, tenant.apiKey), frameOf(message));
  const sending = { contentType: "application/proto", apiKey: tenant.apiKey };
  const connect = await post(server.httpPort, method, sending, Buffer.from(message));
  return [native.code, connect.code];
}

describe.each(METHODS)("%s", (method, schema, request) => {
  test("any request is answered from the catalogue on both ports", async () => {
    await fc.assert(
      fc.asyncProperty(request, async (value) => {
        const message = toBinary(schema, create(schema, value as MessageInitShape<typeof schema>));
        for (const code of await codesOf(method, message)) expect(ANSWERS).toContain(code);
      }),
      { numRuns: RUNS },
    );
    await target.expectUnharmed();
  });

  test("any bytes, and any request with a few bytes changed, are answered from the catalogue on both ports", async () => {
    const changed = fc
      .tuple(request, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }))
      .map(([value, changes]) => {
        const message = toBinary(schema, create(schema, value as MessageInitShape<typeof schema>));
        for (const [at, byte] of changes) message[at % Math.max(1, message.byteLength)] = byte;
        return message;
      });
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.uint8Array(), changed), async (message) => {
        for (const code of await codesOf(method, message)) expect(ANSWERS).toContain(code);
      }),
      { numRuns: RUNS },
    );
    await target.expectUnharmed();
  });
});

test("any JSON is answered from the catalogue", async () => {
  const sending = { contentType: "application/json", apiKey: target.tenant.apiKey };
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...METHODS.map(([method]) => method)),
      fc.oneof(
        fc.json(),
        fc
          .record({ namespace: fc.jsonValue(), key: fc.jsonValue(), lease: fc.jsonValue() })
          .map((value) => JSON.stringify(value)),
      ),
      async (method, body) => {
        const { code } = await post(target.server.httpPort, method, sending, Buffer.from(body));
        expect(ANSWERS).toContain(code);
      },
    ),
    { numRuns: 2 * RUNS },
  );
  await target.expectUnharmed();
});
