import { once } from "node:events";
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from "node:http2";
import { connect as connectTcp } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { openSocket } from "../../../../test/support/network/raw-socket.ts";
import { Refusal } from "../../domain/refusal.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import {
  createInboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createRequestBudget,
} from "../bounds/memory-budgets.ts";
import { FailedCall } from "../errors.ts";
import type { Pipeline } from "../pipeline.ts";
import { frameMessage } from "../receive/read-body.ts";
import { routesOf } from "../route.ts";
import { createGrpcServer } from "./server.ts";

const REQUEST_TIMEOUT_MS = 1000;
/** Of all addresses; one may have half of them. */
const MAX_OPEN_STREAMS = 2000;
const CHECK = "/grpc.health.v1.Health/Check";
const CLAIM = "/onceward.v1.IdempotencyService/Claim";
const BATCH = "/onceward.v1.IdempotencyService/Batch";
const WATCH = "/grpc.health.v1.Health/Watch";
const BYSTANDER = "127.0.0.2";
/** A HealthCheckRequest for the whole server, and responses. */
const [REQUEST, SERVING, SERVICE_UNKNOWN] = [Buffer.alloc(0), Buffer.of(0x08, 1), Buffer.of(0x08, 3)];

/** Frames of settings: https://www.rfc-editor.org/rfc/rfc9113#section-6.5 */
const SETTINGS = "\x04\0";
const EMPTY_SETTINGS = "\0\0\0\x04\0\0\0\0\0";
const ACKNOWLEDGED = "\0\0\0\x04\x01\0\0\0\0";

let server: ReturnType<typeof createGrpcServer>;
let session: ClientHttp2Session;
let port: number;

const notCalled = () => Promise.reject(new Error("no test calls a service of ours"));
const pipeline: Pipeline = {
  answer: notCalled,
  callsInFlight: () => 0,
  authenticate: (route) =>
    Promise.reject(
      route.path.startsWith("/grpc.reflection")
        ? new FailedCall(new Refusal("CREDENTIAL_MISSING", "none"), "request-1")
        : new Error("no test authenticates for a service of ours"),
    ),
};

/** Starts a server whose own services are not called, and connects to it. */
beforeEach(async () => {
  server = createGrpcServer({
    routes: routesOf(IdempotencyService, { claim: notCalled, batch: notCalled }),
    pipeline,
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    // No room for the reply of any batch.
    replyBudget: createReplyBudget({ maxBytes: 0, maxTenantBytes: 0, maxConnectionBytes: 0, maxWaitMs: 1 }),
    requestBudget: createRequestBudget(MAX_OPEN_STREAMS),
    connectionAgeMs: 60_000,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    maxPerAddress: 10,
    tls: undefined,
  });
  port = await server.listen("127.0.0.1", 0);
  server.setServing(true);
  session = http2.connect(`http://127.0.0.1:${port}`);
  onTestFinished(async () => {
    session.destroy();
    await server.close(0);
  });
});

function open(path: string, headers: IncomingHttpHeaders = {}): ClientHttp2Stream {
  return session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    ...headers,
  });
}

interface Answer {
  readonly status: number | undefined;
  readonly grpcStatus: Code;
  readonly message: Buffer;
}

/** Sends a message; resolves with the answer to it. */
async function call(path: string, message: Buffer, headers: IncomingHttpHeaders = {}): Promise<Answer> {
  const stream = open(path, headers);
  let trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.end(message);
  const [response] = (await once(stream, "response")) as [IncomingHttpHeaders & { ":status"?: number }];
  const body = await buffer(stream);
  return {
    status: response[":status"],
    grpcStatus: Number(trailers["grpc-status"] ?? response["grpc-status"]),
    message: body.subarray(5),
  };
}

test("a connection has 2,000 concurrent streams", async () => {
  if (session.remoteSettings.maxConcurrentStreams !== 2000) await once(session, "remoteSettings");
  expect(session.remoteSettings.maxConcurrentStreams).toBe(2000);
});

test("a stream beyond the budget is refused as unprocessed until another one closes", async () => {
  const answered = vi.spyOn(pipeline, "answer").mockReturnValue(new Promise(() => {}));
  onTestFinished(() => answered.mockRestore());
  const streams = Array.from({ length: MAX_OPEN_STREAMS / 2 }, () => open(CLAIM).on("error", () => {}));
  await expect.poll(() => answered.mock.calls.length).toBe(streams.length);
  await expect(call(CHECK, frameMessage(REQUEST))).rejects.toThrow("NGHTTP2_REFUSED_STREAM");
  streams[0]?.close(http2.constants.NGHTTP2_CANCEL);
  await expect
    .poll(() => call(CHECK, frameMessage(REQUEST)).catch(String))
    .toMatchObject({ message: SERVING });
});

test("a batch is read once its largest reply has room; other calls need none", async () => {
  const operator = { role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY } as const;
  const answered = vi.spyOn(pipeline, "answer").mockImplementation(async (_, incoming) => {
    try {
      await incoming.receive(operator);
    } catch (refusal) {
      throw new FailedCall(refusal as Refusal, "request-1");
    }
    throw new FailedCall(new Refusal("CREDENTIAL_MISSING", "read"), "request-1");
  });
  onTestFinished(() => answered.mockRestore());
  const statuses = [BATCH, CLAIM].map(async (path) => (await call(path, frameMessage(REQUEST))).grpcStatus);
  expect(await Promise.all(statuses)).toEqual([Code.Unavailable, Code.Unauthenticated]);
});

test("64 calls of an address begin in a turn of the event loop, and delay no other address", async () => {
  const [connections, calls] = [3, 200];
  const begunBefore: number[] = [];
  let [begun, most] = [0, 0];
  let nextTurn = setImmediate(function count() {
    most = Math.max(most, begun);
    begun = 0;
    nextTurn = setImmediate(count);
  });
  const refusal = new FailedCall(new Refusal("CREDENTIAL_MISSING", "none"), "request-1");
  const answered = vi.spyOn(pipeline, "answer").mockImplementation((_, { peer }) => {
    if (peer === BYSTANDER) begunBefore.push(answered.mock.calls.length - 1);
    else begun++;
    return Promise.reject(refusal);
  });
  const connect = (localAddress: string) =>
    http2.connect(`http://127.0.0.1:${port}`, {
      createConnection: () => connectTcp({ host: "127.0.0.1", port, localAddress }),
    });
  const sessions = [...Array.from({ length: connections }, () => "127.0.0.1"), BYSTANDER].map(connect);
  await Promise.all(sessions.map((opened) => once(opened, "remoteSettings")));
  onTestFinished(() => {
    clearImmediate(nextTurn);
    answered.mockRestore();
    for (const opened of sessions) opened.destroy();
  });
  const headers = { ":method": "POST", ":path": CLAIM, "content-type": "application/grpc" };
  const streams = sessions.flatMap((opened, index) =>
    Array.from({ length: index < connections ? calls : 1 }, () =>
      opened.request(headers).end(frameMessage(REQUEST)).resume(),
    ),
  );
  await Promise.all(streams.map((stream) => once(stream, "close")));
  expect(answered).toHaveBeenCalledTimes(connections * calls + 1);
  expect(most).toBe(64);
  // Its request was sent last, and is read after the others'.
  expect(begunBefore).toHaveLength(1);
  expect(begunBefore[0]).toBeLessThanOrEqual(3 * 64);
});

test("health is answered without a credential", async () => {
  const answer = await call(CHECK, frameMessage(REQUEST));
  expect(answer).toEqual({ status: 200, grpcStatus: 0, message: SERVING });
});

test.each(["/grpc.health.v1.Health/Heal", "/onceward.v1.IdempotencyService/Nothing", "/"])(
  "a call of %s, which does not exist, is UNIMPLEMENTED",
  async (path) => {
    expect(await call(path, frameMessage(REQUEST))).toMatchObject({ grpcStatus: Code.Unimplemented });
  },
);

test.each(["application/json", "application/grpc-web", "application/grpc+json"])(
  "a request with the content type %s is answered 415",
  async (contentType) => {
    const answer = await call(CHECK, frameMessage(REQUEST), { "content-type": contentType });
    expect(answer.status).toBe(415);
    expect(answer.message.toString()).toContain("ONCEWARD_HTTP_PORT");
  },
);

test.each(["P", "PRI ", "PRI * HTTP/2.0\r\n"])(
  "a connection whose preface begins with a packet of %j is served",
  async (start) => {
    const { socket, send, received } = await openSocket(port);
    onTestFinished(() => void socket.destroy());
    await send(start);
    // The server's settings: the packet has been read.
    await expect.poll(() => received().slice(3, 5)).toBe(SETTINGS);
    await send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".slice(start.length) + EMPTY_SETTINGS);
    await expect.poll(() => received().slice(-9)).toBe(ACKNOWLEDGED);
  },
);

test("a connection whose peer sends nothing is cut in time, and keeps no server from closing", async () => {
  const silent = () => connectTcp({ host: "127.0.0.1", port }).resume();
  await once(silent(), "close");
  const last = silent();
  await once(last, "connect");
  const closed = server.close(60_000);
  await once(last, "close");
  await closed;
});

test("health reads only messages that are not compressed", async () => {
  const headers = { "grpc-encoding": "gzip" };
  expect(await call(CHECK, frameMessage(REQUEST), headers)).toMatchObject({ message: SERVING });
  const compressed = frameMessage(gzipSync(REQUEST));
  compressed[0] = 1;
  expect(await call(CHECK, compressed, headers)).toMatchObject({ grpcStatus: Code.Unimplemented });
});

test("a request of health that is too long, or is not a message, is refused", async () => {
  expect(await call(CHECK, frameMessage(Buffer.alloc(1025)))).toMatchObject({
    grpcStatus: Code.InvalidArgument,
  });
  expect(await call(CHECK, frameMessage(Buffer.of(0xff)))).toMatchObject({
    grpcStatus: Code.InvalidArgument,
  });
  expect(await call(CHECK, Buffer.alloc(0))).toMatchObject({ grpcStatus: Code.Unimplemented });
});

test("a watch of an unknown service is answered SERVICE_UNKNOWN, and stays open", async () => {
  const watch = open(WATCH);
  watch.on("error", () => {});
  watch.end(frameMessage(Buffer.from("\n\x07unknown")));
  expect((await once(watch, "data"))[0]).toEqual(frameMessage(SERVICE_UNKNOWN));
  expect(watch.closed).toBe(false);
});

test("a connection has at most 16 watches, and a watch that ends makes room for another", async () => {
  const watches = Array.from({ length: 16 }, () => open(WATCH).on("error", () => {}));
  for (const watch of watches) watch.end(frameMessage(REQUEST));
  await Promise.all(watches.map((watch) => once(watch, "data")));
  expect(await call(WATCH, frameMessage(REQUEST))).toMatchObject({ grpcStatus: Code.ResourceExhausted });
  const [first] = watches;
  first?.close(http2.constants.NGHTTP2_CANCEL);
  const another = () => {
    const watch = open(WATCH).on("error", () => {});
    watch.end(frameMessage(REQUEST));
    return once(watch, "response").then(([headers]) => headers["grpc-status"]);
  };
  await expect.poll(another).toBeUndefined();
});

test("reflection is refused without a credential, before anything of it is read", async () => {
  for (const version of ["v1", "v1alpha"]) {
    const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
    expect(await call(path, frameMessage(Buffer.alloc(0)))).toMatchObject({
      grpcStatus: Code.Unauthenticated,
    });
  }
});

test.each(["Claim", "BatchStream"])(
  "an error that no refusal explains ends the call %s, not the process",
  async (method) => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const stream = open(`/onceward.v1.IdempotencyService/${method}`);
    stream.end(frameMessage(new Uint8Array()));
    const statuses: unknown[] = [];
    for (const event of ["response", "trailers"])
      stream.on(event, (headers: IncomingHttpHeaders) => statuses.push(headers["grpc-status"]));
    stream.resume();
    await once(stream, "close");
    expect(statuses.filter((status) => status !== undefined)).toEqual([String(Code.Internal)]);
    expect(warned).toHaveBeenCalledOnce();
  },
);
