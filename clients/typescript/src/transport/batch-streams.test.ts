import { once } from "node:events";
import { constants, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, fromBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { OncewardError } from "../errors/errors.ts";
import { errorFromCall, isRetryable } from "../errors/mapping.ts";
import { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";
import {
  BatchResponseSchema,
  type BatchStreamRequest,
  BatchStreamRequestSchema,
  type BatchStreamResponse,
  BatchStreamResponseSchema,
  IdempotencyService,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { frameMessage, MessageSplitter } from "../wire/grpc-messages.ts";
import { credentialOf } from "./credentials.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { SessionManager } from "./session-manager.ts";

const GRPC = { ":status": 200, "content-type": "application/grpc+proto" };

let server: Http2Server;
let sessions: SessionManager;
/** The streams of batches that the server was asked for. */
let streams: ServerHttp2Stream[];
/** What they were opened with. */
let credentials: (string | undefined)[];
/** How many batches of each wait for their answer. */
let underWay: Map<ServerHttp2Stream, number>;
/** With what a stream ends that has begun. */
let status: string;
/** How often it was asked for a Batch without a stream. */
let unaryBatches: number;
/** What the server does with a stream of batches. */
let onStream: (stream: ServerHttp2Stream) => void;
/** What the server does with a batch on a stream. */
let onBatch: (stream: ServerHttp2Stream, request: BatchStreamRequest) => void;

beforeEach(async () => {
  streams = [];
  unaryBatches = 0;
  onStream = (stream) => stream.respond(GRPC, { waitForTrailers: true });
  onBatch = reply;
  underWay = new Map();
  status = "0";
  credentials = [];
  server = createServer();
  server.on("sessionError", () => {});
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"]?.endsWith("/BatchStream")) {
      credentials.push(headers.authorization);
      serve(stream);
    } else answerUnary(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  sessions = new SessionManager(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(() => {
  vi.restoreAllMocks();
  sessions.abort();
  server.close();
});

function serve(stream: ServerHttp2Stream): void {
  streams.push(stream);
  onStream(stream);
  const messages = new MessageSplitter();
  stream.on("data", (chunk: Buffer) => {
    messages.push(chunk);
    for (let message = messages.next(); message !== undefined; message = messages.next()) {
      underWay.set(stream, (underWay.get(stream) ?? 0) + 1);
      onBatch(stream, fromBinary(BatchStreamRequestSchema, message));
    }
  });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
  stream.on("end", () => endIfDone(stream));
}

/** As the service does: once the client has ended its side, and all is answered. */
function endIfDone(stream: ServerHttp2Stream): void {
  if (stream.readableEnded && underWay.get(stream) === 0) stream.end();
}

function reply(stream: ServerHttp2Stream, request: BatchStreamRequest): void {
  stream.write(answer({ id: request.id, items: lookups(request) }));
  underWay.set(stream, (underWay.get(stream) ?? 0) - 1);
  endIfDone(stream);
}

/** From now on it is so much later. */
function passTime(ms: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
}

function answerUnary(stream: ServerHttp2Stream): void {
  unaryBatches++;
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.resume();
  stream.end(frameMessage(BatchResponseSchema, { items: [{}] }));
}

function answer(response: Partial<Omit<BatchStreamResponse, "$typeName">>): Buffer {
  return Buffer.from(frameMessage(BatchStreamResponseSchema, response));
}

/** What was looked up, as the owners of records. */
function lookups({ items }: BatchStreamRequest): BatchStreamResponse["items"] {
  const owners = items.map(({ request }) => (request.case === "lookup" ? request.value.key : ""));
  const made = owners.map((owner) => ({
    response: { case: "lookup" as const, value: { record: { owner } } },
  }));
  return create(BatchResponseSchema, { items: made }).items;
}

const createApi = () =>
  createClient(IdempotencyService, createUnaryTransport(sessions, credentialOf({ apiKey: "ow_x_y" })));
let api: ReturnType<typeof createApi>;
beforeEach(() => {
  api = createApi();
});

/** Asks for a key; resolves with whose record the answer says there is. */
async function ask(key = "a", timeoutMs = 5000): Promise<string | undefined> {
  const request = { case: "lookup" as const, value: { namespace: "charges", key } };
  const { items } = await api.batch({ items: [{ request }] }, { timeoutMs });
  const response = items[0]?.response;
  return response?.case === "lookup" ? response.value.record?.owner : response?.case;
}

async function failure(call: Promise<unknown>): Promise<OncewardError> {
  return call.then(
    () => {
      throw new Error("the call did not fail");
    },
    (cause: unknown) => errorFromCall(cause),
  );
}

describe("batches", () => {
  test("travel on one stream with the credential and deadlines, and each answer finds its call", async () => {
    await ask();
    const seen: BatchStreamRequest[] = [];
    onBatch = (stream, request) => {
      seen.push(request);
      if (seen.length < 3) return;
      stream.cork();
      // The last first, and in one piece.
      for (const each of seen.toReversed()) reply(stream, each);
      stream.uncork();
    };
    expect(await Promise.all([ask("a"), ask("b", 1234.5), ask("c")])).toEqual(["a", "b", "c"]);
    expect(streams).toHaveLength(1);
    expect(credentials).toEqual(["Bearer ow_x_y"]);
    expect(seen.map(({ timeout }) => timeout?.seconds)).toEqual([5n, 1n, 5n]);
    expect(unaryBatches).toBe(0);
  });

  test("with another token travel on another stream; those in flight are still answered", async () => {
    const tokens = ["t1", "t2"];
    const credential = credentialOf({
      token: () => ({ token: tokens.shift() ?? "t3", expiresAt: new Date(0) }),
    });
    api = createClient(IdempotencyService, createUnaryTransport(sessions, credential));
    const held: (() => void)[] = [];
    onBatch = (stream, request) => void held.push(() => reply(stream, request));
    // Each call has a token of its own, because all tokens have expired.
    const first = ask("first");
    await vi.waitUntil(() => held.length === 1, 30_000);
    const second = ask("second");
    await vi.waitUntil(() => held.length === 2, 30_000);
    for (const answer of held) answer();
    expect(await Promise.all([first, second])).toEqual(["first", "second"]);
    expect(credentials).toEqual(["Bearer t1", "Bearer t2"]);
  });

  test("are answered also by messages in pieces", async () => {
    onBatch = async (stream, request) => {
      for (const byte of answer({ id: request.id, items: lookups(request) })) {
        stream.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
    };
    expect(await ask("slowly")).toBe("slowly");
  });

  test("fail one by one, each with the service's error", async () => {
    onBatch = (stream, { id, items }) =>
      id % 2 === 0
        ? stream.write(answer({ id, items: lookups({ items } as BatchStreamRequest) }))
        : stream.write(
            answer({
              id,
              error: {
                $typeName: "onceward.v1.BatchItemError",
                code: Code.ResourceExhausted,
                reason: ErrorReason.QUOTA_RATE,
                message: "too fast",
                metadata: { scope: "tenant" },
                fieldViolations: [],
                requestId: "",
              },
            }),
          );
    const [refused, answered] = await Promise.all([failure(ask("a")), ask("b")]);
    expect(refused).toMatchObject({
      code: Code.ResourceExhausted,
      reason: "QUOTA_RATE",
      message: "too fast",
      metadata: { scope: "tenant" },
    });
    expect(answered).toBe("b");
    expect(streams).toHaveLength(1);
  });

  test("are unary calls if the caller sets headers or a signal", async () => {
    await api.batch({ items: [{}] }, { timeoutMs: 5000, headers: { "x-request-id": "r-1" } });
    await api.batch({ items: [{}] }, { timeoutMs: 5000, signal: new AbortController().signal });
    expect([unaryBatches, streams.length]).toEqual([2, 0]);
  });
});

describe("a stream", () => {
  test("is ended after an idle second, and the next batch opens another", async () => {
    await ask();
    const [first] = streams;
    expect(first?.readableEnded).toBe(false);
    await vi.waitUntil(() => first?.closed, { timeout: 30_000 });
    expect([first?.readableEnded, first?.rstCode]).toEqual([true, constants.NGHTTP2_NO_ERROR]);
    expect(await ask("b")).toBe("b");
    expect(streams).toHaveLength(2);
  });

  test("takes no batches after a minute, and those in flight are answered", async () => {
    const answerLate: (() => void)[] = [];
    onBatch = (stream, request) => {
      answerLate.push(() => reply(stream, request));
    };
    const early = ask("early");
    await vi.waitUntil(() => answerLate.length === 1, 30_000);
    passTime(60_001);
    const late = ask("late");
    await vi.waitUntil(() => answerLate.length === 2, 30_000);
    for (const answerNow of answerLate) answerNow();
    expect(await Promise.all([early, late])).toEqual(["early", "late"]);
    expect(streams).toHaveLength(2);
  });

  test("takes no batches after a GOAWAY, and those in flight are answered", async () => {
    let answerLate = () => {};
    onBatch = (stream, request) => {
      answerLate = () => reply(stream, request);
    };
    const early = ask("early");
    await vi.waitUntil(() => streams.length === 1, 30_000);
    streams[0]?.session?.goaway();
    await vi.waitUntil(() => streams[0]?.readableEnded, 30_000);
    answerLate();
    expect(await early).toBe("early");
    onBatch = reply;
    expect(await ask("late")).toBe("late");
    expect(streams).toHaveLength(2);
  });

  test.each([
    ["is reset", (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM)],
    ["ends without a word", (stream: ServerHttp2Stream) => stream.end()],
    [
      "is reset after its headers",
      (stream: ServerHttp2Stream) => setImmediate(() => stream.close(constants.NGHTTP2_CANCEL)),
    ],
    ["is cut off with its connection", (stream: ServerHttp2Stream) => stream.session?.destroy()],
  ])("that %s fails what is under way, to be asked again", async (_name, end) => {
    onBatch = (stream) => end(stream);
    const errors = await Promise.all([failure(ask("a")), failure(ask("b"))]);
    expect(errors.map(isRetryable)).toEqual([true, true]);
    onBatch = reply;
    expect(await ask("again")).toBe("again");
    expect(unaryBatches).toBe(0);
  });

  test("that ends as UNIMPLEMENTED after it has begun does not repeat its batches", async () => {
    status = String(Code.Unimplemented);
    onBatch = (stream) => stream.end();
    expect(await failure(ask())).toMatchObject({ code: Code.Unimplemented });
    expect(unaryBatches).toBe(0);
  });

  test.each([
    ["as a page with a body", false],
    ["by headers alone", true],
  ])(
    "that a balancer without replicas answers with 503, %s, is asked for again",
    async (_name, endStream) => {
      onStream = (stream) => {
        stream.respond({ ":status": 503, "content-type": "text/html" }, { endStream });
        if (!endStream) stream.write("<html><body>No healthy upstream</body></html>");
      };
      onBatch = () => {};
      const errors = await Promise.all([failure(ask("a")), failure(ask("b"))]);
      expect(errors).toMatchObject([{ code: Code.Unavailable }, { code: Code.Unavailable }]);
      expect(errors.map(isRetryable)).toEqual([true, true]);
      expect(errors[0]?.message).toContain("HTTP 503 with text/html");
      onStream = (stream) => stream.respond(GRPC, { waitForTrailers: true });
      onBatch = reply;
      expect(await ask("again")).toBe("again");
      expect(unaryBatches).toBe(0);
    },
  );

  test("with an answer that is not a message fails", async () => {
    onBatch = (stream) => stream.write(Buffer.of(1, 0, 0, 0, 0));
    expect(await failure(ask())).toMatchObject({ code: Code.Internal });
    await vi.waitUntil(() => streams[0]?.closed, 30_000);
  });

  test("with a batch that is not answered in time takes no more batches, and is closed", async () => {
    // Without an answer yet, the client could take the stream for one that a proxy buffers.
    expect(await ask("first")).toBe("first");
    onBatch = () => {};
    expect(await failure(ask("a", 100))).toMatchObject({ code: Code.DeadlineExceeded });
    onBatch = reply;
    expect(await ask("b")).toBe("b");
    expect(streams).toHaveLength(2);
    expect(unaryBatches).toBe(0);
    await vi.waitUntil(() => streams[0]?.closed, { timeout: 30_000 });
  });
});

describe("without streams, batches are unary calls for a minute", () => {
  async function expectUnary(): Promise<void> {
    const before = streams.length;
    await ask();
    expect(streams).toHaveLength(before);
    passTime(60_001);
    onStream = (stream) => stream.respond(GRPC, { waitForTrailers: true });
    expect(await ask("b")).toBe("b");
    expect(streams).toHaveLength(before + 1);
  }

  test("if the server does not support them", async () => {
    onStream = (stream) =>
      stream.respond({ ...GRPC, "grpc-status": Code.Unimplemented }, { endStream: true });
    onBatch = () => {};
    await Promise.all([ask("a"), ask("b")]);
    expect(unaryBatches).toBe(2);
    onBatch = reply;
    await expectUnary();
  });

  test("if a proxy refuses them with its own page", async () => {
    onStream = (stream) => {
      stream.respond({ ":status": 413, "content-type": "text/html" });
      stream.write("<html>");
    };
    onBatch = () => {};
    expect(isRetryable(await failure(ask()))).toBe(true);
    onBatch = reply;
    await expectUnary();
  });

  test("if a proxy buffers them until they end", async () => {
    onStream = () => {};
    onBatch = () => {};
    expect(await failure(ask("a", 100))).toMatchObject({ code: Code.DeadlineExceeded });
    onBatch = reply;
    await expectUnary();
  });
});

test("a connection that can't be opened in time fails the call", async () => {
  const silent = new SessionManager("http://127.0.0.1:9");
  vi.spyOn(silent, "request").mockReturnValue(new Promise(() => {}));
  sessions = silent;
  api = createApi();
  expect(await failure(ask("a", 50))).toMatchObject({ code: Code.DeadlineExceeded });
});
