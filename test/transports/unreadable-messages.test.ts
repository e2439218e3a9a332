import type { ClientHttp2Session } from "node:http2";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BatchRequestSchema } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { callRaw, connectHttp2, framed, frameOf, grpcHeaders } from "../support/network/raw-grpc.ts";
import { type HttpAnswer, post } from "../support/network/raw-http.ts";
import { randomFor } from "../support/seed.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const MIB = 1024 * 1024;
const REFUSED = { code: "InvalidArgument", reason: "INVALID_REQUEST", fields: ["message"] };

/** Bytes that are not a ClaimRequest. */
const UNREADABLE: Readonly<Record<string, Buffer>> = {
  "a length beyond the end": Buffer.from([0x12, 0x7f, 0x61]),
  "field number zero": Buffer.from([0x00, 0x01]),
  "a wire type that does not exist": Buffer.from([0x17]),
  "a varint of eleven bytes": Buffer.alloc(11, 0xff),
  "groups a million deep": Buffer.alloc(MIB, 0x7b),
  "a key that is not UTF-8": Buffer.from([0x12, 0x02, 0xff, 0xfe]),
  "a key that is a surrogate in UTF-8": Buffer.from([0x12, 0x03, 0xed, 0xa0, 0x80]),
  "a key that is an overlong NUL": Buffer.from([0x12, 0x02, 0xc0, 0x80]),
};

const { database, server } = useServer();
let apiKey: string;
let session: ClientHttp2Session;

beforeAll(async () => {
  apiKey = (await createTenant(database)).apiKey;
  session = await connectHttp2(server.grpcPort);
});

afterAll(async () => {
  session?.destroy();
});

test("no cache stores the answer of a call over HTTP, which may carry a key that was made", async () => {
  const answer = await fetch(`http://127.0.0.1:${server.httpPort}/onceward.v1.IdentityService/WhoAmI`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: "{}",
  });
  expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "no-store"]);
});

/** Returns a batch of exactly this size: its one item's namespace repeats `text`. */
function batchOf(bytes: number, text = "x"): Buffer {
  const filled = (length: number) => text.repeat(Math.ceil(length / text.length)).slice(0, length);
  const overhead = framed(BatchRequestSchema, batchWith(filled(bytes))).byteLength - 5 - bytes;
  return framed(BatchRequestSchema, batchWith(filled(bytes - overhead)));
}

function batchWith(namespace: string): MessageInitShape<typeof BatchRequestSchema> {
  return { items: [{ request: { case: "lookup", value: { namespace, key: "k" } } }] };
}

describe("over native gRPC", () => {
  test.each(Object.keys(UNREADABLE))("%s is refused as the caller's error", async (name) => {
    const body = frameOf(UNREADABLE[name] ?? Buffer.alloc(0));
    expect(await callRaw(session, grpcHeaders("Claim", apiKey), body)).toMatchObject(REFUSED);
  });

  test.each([
    ["Claim", 64 * 1024],
    ["Complete", 2 * MIB],
  ])("a message of %s that is longer than %i bytes is refused for its size", async (method, bytes) => {
    // Not a valid message: one of the allowed size is read, and refused for its content.
    const call = async (length: number) =>
      await callRaw(session, grpcHeaders(method, apiKey), frameOf(Buffer.alloc(length, 0x7b)));
    const sized = expect.stringContaining("bytes");
    expect(await call(bytes + 1)).toMatchObject({ ...REFUSED, message: sized });
    expect(await call(bytes)).not.toMatchObject({ message: sized });
  });

  test("a message of 4 MiB is read, and one byte more is refused with details", async () => {
    const headers = grpcHeaders("Batch", apiKey);
    expect(await callRaw(session, headers, batchOf(4 * MIB))).toMatchObject({ code: "OK" });
    expect(await callRaw(session, headers, batchOf(4 * MIB + 1))).toMatchObject(REFUSED);
    expect(await callRaw(session, headers, batchOf(9 * MIB))).toMatchObject(REFUSED);
  });

  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ] as const)(
    "a message compressed by %s is read, and one that swells or is damaged is refused",
    async (name, compress) => {
      const headers = grpcHeaders("Batch", apiKey, { "grpc-encoding": name });
      const plain = batchOf(MIB, randomFor("unreadable messages").bytes(50_000).toString("hex"));
      const compressed = compress(plain.subarray(5));
      const dense = compress(batchOf(MIB).subarray(5));
      const bomb = compress(Buffer.alloc(64 * MIB));
      expect(await callRaw(session, headers, frameOf(compressed, 1))).toMatchObject({ code: "OK" });
      expect(await callRaw(session, headers, plain)).toMatchObject({ code: "OK" });
      expect(await callRaw(session, headers, frameOf(bomb, 1))).toMatchObject(REFUSED);
      expect(await callRaw(session, headers, frameOf(dense, 1))).toMatchObject({
        ...REFUSED,
        message: expect.stringContaining("1/200"),
      });
      expect(await callRaw(session, headers, frameOf(compressed.subarray(0, 100), 1))).toMatchObject(REFUSED);
    },
  );

  test("a call with no message, half of one or two is UNIMPLEMENTED, as gRPC specifies", async () => {
    const headers = grpcHeaders("Batch", apiKey);
    const message = batchOf(1000);
    for (const body of [Buffer.alloc(0), message.subarray(0, 500), Buffer.concat([message, message])]) {
      expect(await callRaw(session, headers, body)).toMatchObject({ code: "Unimplemented" });
    }
  });

  test("a request that is not a gRPC call is refused with an HTTP status", async () => {
    const headers = grpcHeaders("Batch", apiKey, { "content-type": "application/json" });
    expect(await callRaw(session, headers, batchOf(1000))).toMatchObject({ code: "HTTP 415" });
  });

  test.each([
    "application/grpcfoo",
    "application/grpc+json",
    "application/grpc-web",
    "application/grpc-web+proto",
  ])("%s is not a native gRPC", async (contentType) => {
    const headers = grpcHeaders("Batch", apiKey, { "content-type": contentType });
    expect(await callRaw(session, headers, batchOf(1000))).toMatchObject({ code: "HTTP 415" });
    const health = { ...headers, ":path": "/grpc.health.v1.Health/Check" };
    expect(await callRaw(session, health, frameOf(Buffer.alloc(0)))).toMatchObject({ code: "HTTP 415" });
  });

  test.each(["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"])(
    "%s is native gRPC",
    async (contentType) => {
      const headers = grpcHeaders("Batch", apiKey, { "content-type": contentType });
      expect(await callRaw(session, headers, batchOf(1000))).toMatchObject({ code: "OK" });
    },
  );

  test("a message with flags that do not exist is refused", async () => {
    const message = batchOf(1000).subarray(5);
    for (const flags of [2, 3, 128, 255]) {
      const answer = await callRaw(session, grpcHeaders("Batch", apiKey), frameOf(message, flags));
      expect(answer).toMatchObject({ code: "InvalidArgument", message: expect.stringContaining("flags") });
    }
  });

  test("an unknown compression is UNIMPLEMENTED, as in gRPC's specification", async () => {
    const headers = grpcHeaders("Claim", apiKey, { "grpc-encoding": "zstd" });
    expect(await callRaw(session, headers, frameOf(Buffer.alloc(1), 1))).toMatchObject({
      code: "Unimplemented",
    });
  });
});

describe.each([
  ["Connect", "application/proto"],
  ["gRPC-Web", "application/grpc-web+proto"],
] as const)("over %s", (_name, contentType) => {
  const asSent = (message: Buffer) => (contentType.includes("grpc-web") ? frameOf(message) : message);
  const call = (method: string, message: Buffer) =>
    post(server.httpPort, method, { contentType, apiKey }, asSent(message));

  test.each(Object.keys(UNREADABLE))("%s is refused as the caller's error", async (name) => {
    expect(await call("Claim", UNREADABLE[name] ?? Buffer.alloc(0))).toMatchObject(REFUSED);
  });

  test("a message over 4 MiB is refused with details", async () => {
    expect(await call("Batch", batchOf(4 * MIB - 5).subarray(5))).toMatchObject({ code: "OK" });
    expect(await call("Batch", batchOf(4 * MIB + 1).subarray(5))).toMatchObject(REFUSED);
    expect(await call("Batch", batchOf(9 * MIB).subarray(5))).toMatchObject(REFUSED);
  });

  test("without a credential, an unreadable message gets the same answer as a readable one", async () => {
    const sent = asSent(Buffer.from([0x17]));
    const answer = await post(server.httpPort, "Claim", { contentType, apiKey: undefined }, sent);
    expect(answer).toMatchObject({ code: "Unauthenticated", reason: "CREDENTIAL_MISSING" });
  });
});

describe("over JSON", () => {
  const json = (body: string | Buffer, more: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> =>
    post(server.httpPort, "Claim", { contentType: "application/json", apiKey, more }, Buffer.from(body));

  test.each([
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "[".repeat(100_000),
    '{"namespace": 7}',
    '{"fingerprint": "not base64!"}',
    '{"lease": "soon"}',
    '{"lease": "1.0000000001s"}',
    '{"lease": "9223372036854775808s"}',
    '{"wait": "-0.5"}',
    '{"acceptAmbiguous": "yes"}',
    '{"key": "a", "key": "b"}',
  ])("%.40s is refused as the caller's error", async (body) => {
    const answer = await json(body);
    expect(answer).toMatchObject({ code: "InvalidArgument", reason: "INVALID_REQUEST" });
  });

  test("bytes that are not UTF-8 are refused, because different keys would become equal", async () => {
    const body = Buffer.concat([
      Buffer.from('{"namespace":"a","key":"'),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ]);
    expect(await json(body)).toMatchObject(REFUSED);
  });

  test("a lone surrogate in a key is refused, because different keys would become equal", async () => {
    const answer = await json('{"namespace":"charges","key":"a\\ud800"}');
    expect(answer).toMatchObject({ ...REFUSED, fields: ["key"] });
  });

  test("an unknown kind is refused", async () => {
    const body = Buffer.from('{"namespace":"a","key":"k","fencingToken":"1","result":{"kind":"KIND_MAYBE"}}');
    const answer = await post(server.httpPort, "Complete", { contentType: "application/json", apiKey }, body);
    expect(answer).toMatchObject({ code: "InvalidArgument", fields: ["result.kind"] });
  });

  test("compressed bodies are read, and refused if they are damaged or inflate beyond the limit", async () => {
    const claim = '{"namespace":"charges","key":"compressed"}';
    const gzip = { "content-encoding": "gzip" };
    const bomb = gzipSync(Buffer.alloc(64 * MIB, " "));
    expect(await json(gzipSync(claim), gzip)).toMatchObject({ code: "OK" });
    expect(await json(brotliCompressSync(claim), { "content-encoding": "br" })).toMatchObject({ code: "OK" });
    expect(await json(bomb, gzip)).toMatchObject(REFUSED);
    expect(await json(claim, gzip)).toMatchObject(REFUSED);
    expect(await json(gzipSync(claim).subarray(0, 20), gzip)).toMatchObject(REFUSED);
  });

  test("a body over 4 MiB is refused, whether or not its length was declared", async () => {
    const body = Buffer.from(`{"namespace":"charges","key":"${"x".repeat(4 * MIB)}"}`);
    expect(await json(body)).toMatchObject(REFUSED);
    expect(await json(body, { "transfer-encoding": "chunked" })).toMatchObject(REFUSED);
  });

  test.each([
    "message=%7B%7D&base64=1&encoding=json",
    "message=!!&base64=1&encoding=proto",
    "message=F&encoding=proto",
  ])("a GET with %s is refused as the caller's error", async (query) => {
    const path = `/onceward.v1.IdempotencyService/Lookup?connect=v1&${query}`;
    const response = await fetch(`http://127.0.0.1:${server.httpPort}${path}`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid_argument" }]);
  });
});
