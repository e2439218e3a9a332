import { once } from "node:events";
import { constants } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import {
  BatchRequestSchema,
  ClaimRequestSchema,
} from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { floodUntilClosed, startTarget, type Target, useTarget } from "../support/attacks/hostility.ts";
import { untilStill } from "../support/attacks/until-still.ts";
import { connectClient } from "../support/calls/clients.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
  openWindows,
} from "../support/network/http2-frames.ts";
import { openSession } from "../support/network/open-session.ts";
import { callRaw, framed, frameOf, grpcHeaders, pathOf } from "../support/network/raw-grpc.ts";
import { openSocket } from "../support/network/raw-socket.ts";
import { readMetrics } from "../support/servers/metrics.ts";

const MIB = 1024 * 1024;
/** Concurrent streams of a connection. */
const MAX_STREAMS = 2000;

/** Calls that each have an answer of 3.6 MB. */
const UNREAD_CALLS = 100;
/** Of a connection, for the replies of batches: 16 of the largest, which each of the calls reserves. */
const MAX_UNREAD_BYTES = 64 * MIB;

const target = useTarget();

afterEach(() => target.expectUnharmed());

const numbers = (length: number) => Array.from({ length }, (_, number) => number);

const connect = ({ server } = target) => openSession(server.grpcPort);

/** Counts the calls of a method that a server has answered. */
async function countCalls({ server }: Pick<Target, "server">, method: string): Promise<number> {
  const metrics = [...(await readMetrics(server))];
  return metrics
    .filter(
      ([name]) =>
        name.startsWith("onceward_rpc_duration_seconds_count") && name.includes(`method="${method}"`),
    )
    .reduce((sum, [, calls]) => sum + calls, 0);
}

function callHead(more: Readonly<Record<string, string>> = {}): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": pathOf("Claim"),
    ":authority": "a",
    "content-type": "application/grpc",
    te: "trailers",
    ...more,
  });
}

describe("a head that is invalid", () => {
  test.each([
    ["an authority that is not a host", { ":authority": "[" }],
    ["an authority with a port out of range", { ":authority": "a:99999" }],
    ["a path with bytes over 127", { ":path": "/\u00ff\u00fe" }],
    ["a path with an escape sequence", { ":path": "/%00%ff" }],
    ["a path without a slash", { ":path": "x" }],
    ["an asterisk for a path", { ":path": "*" }],
    ["an empty path", { ":path": "" }],
    ["a method that does not exist", { ":method": "BREW" }],
    ["a method to connect", { ":method": "CONNECT" }],
    ["another scheme", { ":scheme": "gopher" }],
    ["a content type that is not gRPC", { "content-type": "text/html" }],
    ["a credential with bytes over 127", { authorization: "Bearer s\u00e9cret" }],
    ["binary metadata that is not base64", { "x-bin": "???" }],
    ["a compression with bytes over 127", { "grpc-encoding": "\u00ff" }],
    ["a request id that is a line", { "x-request-id": "a b" }],
    ["an upper-case name", { "X-Upper": "v" }],
    ["a name with a space", { "x y": "v" }],
    ["a connection header", { connection: "keep-alive" }],
    ["a wrong content length", { "content-length": "7" }],
  ])("%s harms no other call", async (_name, more) => {
    const { send, socket } = await openHttp2(target.server.grpcPort);
    await send(frame(FRAME.headers, END_HEADERS, 1, callHead(more)));
    await send(frame(FRAME.data, END_STREAM, 1, framed(ClaimRequestSchema, ORDER)));
    // The answer, if there is one, comes before that of the next call.
    await target.expectUnharmed();
    socket.destroy();
  });

  test("a stream without any header, and one with two paths, harm no other call", async () => {
    const { send, socket } = await openHttp2(target.server.grpcPort);
    await send(frame(FRAME.headers, END_HEADERS | END_STREAM, 1));
    await send(
      frame(FRAME.headers, END_HEADERS, 3, Buffer.concat([callHead(), headerBlock({ ":path": "/" })])),
    );
    await target.expectUnharmed();
    socket.destroy();
  });
});

describe("a connection that is not HTTP/2", () => {
  const garbage = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 89 + 7) % 256));

  test.each([
    ["garbage", garbage],
    ["a request of HTTP/1.1", Buffer.from("GET / HTTP/1.1\r\nhost: a\r\n\r\n")],
    ["a TLS handshake", Buffer.from("16030100f8010000f40303", "hex")],
  ])("%s ends the connection", async (name, bytes) => {
    const { send, closed, socket } = await openSocket(target.server.grpcPort);
    await send(bytes);
    // The keepalive ends a connection with so few bytes, because it may be a slow client.
    if (name === "a TLS handshake") socket.end();
    await closed;
  });

  test.each([
    ["a frame over the limit", frame(FRAME.data, 0, 1, Buffer.alloc(20_000))],
    ["data on a stream that never was", frame(FRAME.data, END_STREAM, 99, Buffer.alloc(10))],
    ["a block that is not HPACK", frame(FRAME.headers, END_HEADERS, 1, Buffer.alloc(100, 0xff))],
    ["a continuation of nothing", frame(FRAME.continuation, END_HEADERS, 1, callHead())],
    ["an even stream id", frame(FRAME.headers, END_HEADERS, 2, callHead())],
    ["a window that overflows", frame(FRAME.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))],
    ["settings of an invalid length", frame(FRAME.settings, 0, 0, Buffer.alloc(5))],
  ])("%s ends the connection", async (_name, bytes) => {
    const { send, closed } = await openHttp2(target.server.grpcPort);
    await send(bytes);
    await closed;
  });

  test("frames of unknown types, flipped bits and truncated messages harm no other call", async () => {
    const call = Buffer.concat([
      frame(FRAME.headers, END_HEADERS, 1, callHead()),
      frame(FRAME.data, END_STREAM, 1, framed(ClaimRequestSchema, ORDER)),
    ]);
    for (let i = 0; i < call.byteLength; i += 3) {
      const { send, socket } = await openHttp2(target.server.grpcPort);
      const flipped = Buffer.from(call);
      flipped[i] = (flipped[i] ?? 0) ^ (1 << (i % 8));
      await send(flipped);
      await send(frame(0x42, 0, 0, Buffer.alloc(50)));
      socket.end();
    }
  });
});

describe("floods", () => {
  const flood = async (next: (round: number) => Buffer) =>
    floodUntilClosed(await openHttp2(target.server.grpcPort), next);
  const floodUnread = async (next: (round: number) => Buffer) => {
    const raw = await openHttp2(target.server.grpcPort);
    raw.socket.pause();
    await floodUntilClosed(raw, next);
  };

  test("an endless header block ends the connection", async () => {
    const start = frame(FRAME.headers, 0, 1, callHead());
    const more = frame(FRAME.continuation, 0, 1, headerBlock({ "x-more": "v".repeat(1000) }));
    await flood((round) => (round === 0 ? start : more));
  });

  test.each([
    ["16 KiB", { "x-huge": "v".repeat(16_384) }],
    ["128 headers", Object.fromEntries(numbers(128).map((n) => [`x-${n}`, "v"]))],
  ])("a header list over %s is refused by a status that names the limit", async (_limit, more) => {
    const session = await connect();
    const headers = grpcHeaders("Claim", target.tenant.apiKey, more);
    const { code, reason, message, fields } = await callRaw(
      session,
      headers,
      framed(ClaimRequestSchema, ORDER),
    );
    expect([code, reason, fields]).toEqual(["InvalidArgument", "INVALID_REQUEST", ["headers"]]);
    expect(message).toBe("headers must be at most 16384 bytes and 128 headers");
  });

  test("a header list that is not even kept is reset with the code that gRPC reads as too much", async () => {
    const session = await connect();
    // Before the client has read the limit, its list is kept, and refused by a status.
    await once(session, "remoteSettings");
    const huge = grpcHeaders(
      "Claim",
      target.tenant.apiKey,
      Object.fromEntries(numbers(4).map((n) => [`x-${n}`, "v".repeat(9000)])),
    );
    const { code } = await callRaw(session, huge, framed(ClaimRequestSchema, ORDER));
    expect(code).toBe(`RESET ${constants.NGHTTP2_ENHANCE_YOUR_CALM}`);
  });

  test("many streams that are opened and reset immediately end the connection", async () => {
    const cancel = Buffer.from([0, 0, 0, 8]);
    await flood((round) =>
      Buffer.concat(
        Array.from({ length: 100 }, (_, i) => {
          const streamId = (round * 100 + i) * 2 + 1;
          return Buffer.concat([
            frame(FRAME.headers, END_HEADERS, streamId, callHead()),
            frame(FRAME.resetStream, 0, streamId, cancel),
          ]);
        }),
      ),
    );
  });

  test("many pings whose answers are not read end the connection", async () => {
    const pings = Buffer.concat(Array.from({ length: 1000 }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))));
    await floodUnread(() => pings);
  });

  test("many settings whose answers are not read end the connection", async () => {
    const settings = Buffer.concat(Array.from({ length: 1000 }, () => frame(FRAME.settings, 0, 0)));
    await floodUnread(() => settings);
  });

  test("more concurrent streams than the server allows end the connection", async () => {
    const head = callHead({ authorization: `Bearer ${target.tenant.apiKey}` });
    await flood((round) =>
      Buffer.concat(
        Array.from({ length: 100 }, (_, i) =>
          frame(FRAME.headers, END_HEADERS, (round * 100 + i) * 2 + 1, head),
        ),
      ),
    );
  });
});

describe("memory", () => {
  /** Its requests may take a minute: on a busy machine a thousand bombs take more than a second. */
  const patient = useTarget({ ONCEWARD_REQUEST_TIMEOUT: "60s" });

  afterEach(() => patient.expectUnharmed());

  test.each(["gzip", "deflate"])("a thousand %s bombs at once cost bounded memory", async (encoding) => {
    const session = await connect(patient);
    const bomb = frameOf(gzipSync(Buffer.alloc(8 * MIB)), 1);
    const headers = grpcHeaders("Claim", undefined, { "grpc-encoding": encoding });
    const answers = await Promise.all(Array.from({ length: 1000 }, () => callRaw(session, headers, bomb)));
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["Unauthenticated"]));
  });

  test("bombs for the health check are not decompressed", async () => {
    const session = await connect(patient);
    const bomb = frameOf(gzipSync(Buffer.alloc(8 * MIB)), 1);
    const headers = grpcHeaders("Claim", undefined, {
      ":path": "/grpc.health.v1.Health/Check",
      "grpc-encoding": "gzip",
    });
    const answers = await Promise.all(Array.from({ length: 300 }, () => callRaw(session, headers, bomb)));
    // Too long for the name of a service, before anything is decompressed.
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["InvalidArgument"]));
  });

  test("calls whose answers are not read cost bounded memory", async () => {
    const { send, socket } = await openHttp2(patient.server.grpcPort);
    socket.pause();
    const credential = { authorization: `Bearer ${patient.tenant.apiKey}` };
    const before = await countCalls(patient, "Claim");
    for (let i = 0; i < MAX_STREAMS; i++) {
      const streamId = i * 2 + 1;
      void send(frame(FRAME.headers, END_HEADERS, streamId, callHead(credential)));
      void send(frame(FRAME.data, END_STREAM, streamId, framed(ClaimRequestSchema, ORDER)));
    }
    await expect.poll(() => countCalls(patient, "Claim")).toBe(before + MAX_STREAMS);
    await patient.expectUnharmed();
    socket.destroy();
  });

  test("large answers that are not read are bounded, and callers that read get theirs", {
    timeout: 60_000,
  }, async () => {
    // A separate server, which uses more memory than the other tests allow.
    const { server, tenant, end } = await startTarget();
    onTestFinished(end);
    const id = { namespace: "charges", key: "large" };
    const client = connectClient(server, tenant.apiKey, "native gRPC");
    const { fencingToken } = await grant(client, id);
    await client.complete({ ...id, fencingToken, result: success("x".repeat(60_000)) });
    const items = Array.from({ length: 60 }, () => ({ request: { case: "lookup" as const, value: id } }));
    // All requests fit into the server's window, because a client that does not read gets no window updates.
    const body = frameOf(gzipSync(toBinary(BatchRequestSchema, create(BatchRequestSchema, { items }))), 1);
    const credential = { "grpc-encoding": "gzip", authorization: `Bearer ${tenant.apiKey}` };
    const head = callHead({ ":path": pathOf("Batch"), ...credential });
    const { send, socket } = await openHttp2(server.grpcPort);
    socket.pause();
    void send(openWindows());
    for (let call = 0; call < UNREAD_CALLS; call++) {
      void send(frame(FRAME.headers, END_HEADERS, call * 2 + 1, head));
      void send(frame(FRAME.data, END_STREAM, call * 2 + 1, body));
    }
    await expect.poll(() => countCalls({ server }, "Batch")).toBe(UNREAD_CALLS);
    expect((await client.batch({ items })).items).toHaveLength(items.length);

    let readBytes = 0;
    socket.on("data", (chunk: Buffer) => {
      readBytes += chunk.byteLength;
    });
    socket.resume();
    await expect.poll(() => readBytes, { timeout: 30_000 }).toBeGreaterThan(MAX_UNREAD_BYTES * 0.8);
    const allBytes = await untilStill(
      () => readBytes,
      () => readMetrics(server),
    );
    expect(allBytes).toBeLessThan(MAX_UNREAD_BYTES * 1.1);
    socket.destroy();
    expect(server.alive).toBe(true);
  });

  test("a thousand silent connections keep no other client out", async () => {
    const idle = await Promise.all(Array.from({ length: 1000 }, () => openSocket(target.server.grpcPort)));
    await target.expectUnharmed();
    for (const { socket } of idle) socket.destroy();
  });
});
