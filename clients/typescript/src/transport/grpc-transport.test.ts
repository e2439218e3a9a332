import { once } from "node:events";
import { constants, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errorFromCall, isAboutContent, isRetryable } from "../errors/mapping.ts";
import { BadRequestSchema } from "../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../gen/google/rpc/status_pb.ts";
import {
  BatchResponseSchema,
  IdempotencyService,
  LookupResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { credentialOf } from "./credentials.ts";
import { createUnaryTransport } from "./grpc-transport.ts";
import { SessionManager } from "./session-manager.ts";

let server: Http2Server;
let sessions: SessionManager;
/** Of the connections, in the order in which they were opened. */
let sockets: Socket[];
/** What the server was sent, as it came. */
let requests: { readonly headers: Record<string, unknown>; readonly body: Buffer }[];
/** What the server does with a stream whose request has arrived. */
let answer: (stream: ServerHttp2Stream) => void;

beforeEach(async () => {
  requests = [];
  sockets = [];
  server = createServer();
  server.on("connection", (socket) => sockets.push(socket));
  server.on("sessionError", () => {});
  server.on("stream", async (stream, headers) => {
    stream.on("error", () => {});
    const body = Buffer.concat(await stream.toArray().catch(() => []));
    requests.push({ headers, body });
    if (!stream.destroyed) answer(stream as ServerHttp2Stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  sessions = new SessionManager(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(() => {
  sessions.abort();
  server.close();
});

const client = () =>
  createClient(IdempotencyService, createUnaryTransport(sessions, credentialOf({ apiKey: "ow_x_y" })));
const lookUp = (options = {}) => client().lookup({ namespace: "charges", key: "order-1" }, options);
const GRPC = { ":status": 200, "content-type": "application/grpc+proto" };

const OWNER = "billing/1";
function message(owner = OWNER): Buffer {
  return framed(toBinary(LookupResponseSchema, create(LookupResponseSchema, { record: { owner } })));
}

function framed(bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.byteLength, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Answers with these bytes and trailers. */
function answerWith(
  body: Buffer,
  trailers: Record<string, string> = { "grpc-status": "0" },
  headers = GRPC,
): void {
  answer = (stream) => {
    stream.respond(headers, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  };
}

/** Answers with headers alone, as a call that failed is answered. */
function answerWithHeaders(headers: Record<string, string | number>): void {
  answer = (stream) => stream.respond({ ...GRPC, ...headers }, { endStream: true });
}

/** Returns what resolves once the client has cancelled the stream that is answered so. */
function answerAndWatch(answerNow: (stream: ServerHttp2Stream) => void) {
  const code = Promise.withResolvers<number>();
  answer = (stream) => {
    stream.on("close", () => code.resolve(stream.rstCode));
    answerNow(stream);
  };
  return async () => expect(await code.promise).toBe(constants.NGHTTP2_CANCEL);
}

async function failure(call: Promise<unknown> = lookUp()): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof ConnectError) return error;
  throw new Error("the call did not fail with a ConnectError", { cause: error });
}

describe("a call", () => {
  test("is a gRPC request, with its deadline, the credential and the caller's own headers", async () => {
    answerWith(message());
    expect((await lookUp({ timeoutMs: 1234.5, headers: { "X-Request-Id": "r-1" } })).record?.owner).toBe(
      OWNER,
    );
    expect(requests[0]?.headers["user-agent"]).toMatch(/^onceward-typescript\/\d+\.\d+\.\d+/);
    expect(requests[0]?.headers).toMatchObject({
      ":method": "POST",
      ":path": "/onceward.v1.IdempotencyService/Lookup",
      "content-type": "application/grpc+proto",
      te: "trailers",
      authorization: "Bearer ow_x_y",
      "grpc-timeout": "1235m",
      "x-request-id": "r-1",
    });
    const { body } = requests[0] ?? { body: Buffer.alloc(0) };
    expect([body[0], body.readUInt32BE(1)]).toEqual([0, body.byteLength - 5]);
  });

  test("without a deadline sends none", async () => {
    answerWith(message());
    await lookUp();
    expect(requests[0]?.headers).not.toHaveProperty("grpc-timeout");
  });

  test("is answered also by a message in many frames", async () => {
    answerWith(message("b".repeat(1_000_000)));
    expect((await lookUp()).record?.owner).toHaveLength(1_000_000);
  });

  test("is answered with new lists", async () => {
    const lookup = create(LookupResponseSchema, { record: { owner: OWNER } });
    const batch = create(BatchResponseSchema, {
      items: [{ response: { case: "lookup", value: lookup } }, {}],
    });
    answerWith(framed(toBinary(BatchResponseSchema, batch)));
    const first = await client().batch({});
    const second = await client().batch({});
    expect(first).toEqual(batch);
    expect(second).toEqual(batch);
  });

  test("has the answer's headers and trailers", async () => {
    answerWith(message(), { "grpc-status": "0", "x-trailer": "t" }, {
      ...GRPC,
      "x-header": "h",
    } as typeof GRPC);
    const seen: (string | null)[] = [];
    await lookUp({
      onHeader: (headers: Headers) => seen.push(headers.get("x-header")),
      onTrailer: (trailers: Headers) => seen.push(trailers.get("x-trailer")),
    });
    expect(seen).toEqual(["h", "t"]);
  });

  test("that is repeated goes over the same connection", async () => {
    answerWith(message());
    for (let i = 0; i < 3; i++) await lookUp();
    expect(sockets).toHaveLength(1);
  });

  test("that can't be encoded fails alone, without a request", async () => {
    const error = await failure(client().claim({ key: "order-1", lease: { seconds: 2n ** 64n } }));
    expect(error.code).toBe(Code.Internal);
    expect(isRetryable(errorFromCall(error))).toBe(false);
    expect(requests).toHaveLength(0);
  });
});

describe("an error of the service", () => {
  const violations = [{ field: "key", description: "is empty" }];
  const details = toBinary(
    StatusSchema,
    create(StatusSchema, {
      code: Code.InvalidArgument,
      message: "key is empty – leer",
      details: [
        {
          typeUrl: "type.googleapis.com/google.rpc.BadRequest",
          value: toBinary(BadRequestSchema, create(BadRequestSchema, { fieldViolations: violations })),
        },
      ],
    }),
  );
  const status = {
    "grpc-status": "3",
    "grpc-message": "key",
    "grpc-status-details-bin": Buffer.from(details).toString("base64"),
  };

  test.each([
    ["headers alone", () => answerWithHeaders(status)],
    ["trailers", () => answerWith(Buffer.alloc(0), status)],
    ["trailers after a message", () => answerWith(message(), status)],
  ])("is read from %s, with its details", async (_, arrange) => {
    arrange();
    const error = await failure();
    expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: "key is empty – leer" });
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject(violations);
  });

  test("without details has its message decoded", async () => {
    answerWithHeaders({ "grpc-status": "5", "grpc-message": "nicht%20da" });
    expect(await failure()).toMatchObject({ code: Code.NotFound, rawMessage: "nicht da" });
  });
});

describe("an invalid answer", () => {
  test.each([
    ["without a status", Code.Internal, () => answerWith(message(), { "x-other": "1" })],
    ["without a message", Code.Internal, () => answerWith(Buffer.alloc(0))],
    ["with headers alone, and OK", Code.Internal, () => answerWithHeaders({ "grpc-status": "0" })],
    ["with two messages", Code.Internal, () => answerWith(Buffer.concat([message(), message()]))],
    ["with half a message", Code.Internal, () => answerWith(message().subarray(0, 10))],
    [
      "with a compressed message",
      Code.Internal,
      () => answerWith(Buffer.concat([Buffer.of(1), message().subarray(1)])),
    ],
    [
      "of bytes that are not a message",
      Code.Internal,
      () => answerWith(Buffer.of(0, 0, 0, 0, 2, 0x0a, 0xff)),
    ],
  ])("%s is an error", async (_, code, arrange) => {
    arrange();
    expect((await failure()).code).toBe(code);
  });
});

describe("an answer that is not gRPC", () => {
  const html = (status: number) => ({ ":status": status, "content-type": "text/html; charset=utf-8" });

  test.each([
    ["an HTML page of a balancer", html(503)],
    ["an HTML page that says OK", html(200)],
    ["an HTML page of a web server", html(404)],
    ["a page of a proxy that asks for a password", html(401)],
    ["a status without a content type", { ":status": 502 }],
    ["gRPC's content type with a failed HTTP status and no gRPC status", { ...GRPC, ":status": 503 }],
  ])("(%s) fails with UNAVAILABLE, so that the call is repeated", async (_, headers) => {
    answer = (stream) => {
      stream.respond(headers);
      stream.end("<html><body>No healthy upstream</body></html>");
    };
    const error = await failure();
    expect(error.code).toBe(Code.Unavailable);
    expect(error.rawMessage).toContain(`HTTP ${headers[":status"]}`);
    expect(isRetryable(errorFromCall(error))).toBe(true);
  });

  test("is not read to its end", async () => {
    const untilCancelled = answerAndWatch((stream) => {
      stream.respond(html(503));
      stream.write("<html>");
    });
    expect((await failure()).code).toBe(Code.Unavailable);
    await untilCancelled();
  });

  test("to a request that is too large for a proxy is not retried", async () => {
    answer = (stream) => {
      stream.respond(html(413));
      stream.end("<html>");
    };
    const error = errorFromCall(await failure());
    expect([isRetryable(error), isAboutContent(error)]).toEqual([false, true]);
  });

  test("has its own status where a gRPC service sends one with a failed HTTP status", async () => {
    answerWithHeaders({ ":status": 503, "grpc-status": "8", "grpc-message": "too fast" });
    expect(await failure()).toMatchObject({ code: Code.ResourceExhausted, rawMessage: "too fast" });
  });
});

describe("a stream that the server resets", () => {
  test.each([
    ["REFUSED_STREAM", constants.NGHTTP2_REFUSED_STREAM, Code.Unavailable],
    ["CANCEL", constants.NGHTTP2_CANCEL, Code.Canceled],
    ["INTERNAL_ERROR", constants.NGHTTP2_INTERNAL_ERROR, Code.Internal],
    ["ENHANCE_YOUR_CALM", constants.NGHTTP2_ENHANCE_YOUR_CALM, Code.ResourceExhausted],
  ])("with %s fails with gRPC's code for it", async (_, reset, code) => {
    answer = (stream) => stream.close(reset);
    expect((await failure()).code).toBe(code);
  });

  test("in the middle of its message has no answer", async () => {
    answer = (stream) => {
      stream.respond(GRPC);
      stream.write(message().subarray(0, 10), () => stream.close(constants.NGHTTP2_CANCEL));
    };
    expect((await failure()).code).toBe(Code.Canceled);
  });
});

describe("a connection", () => {
  test.each([
    ["is reset", () => sockets.at(-1)?.resetAndDestroy()],
    ["just ends", () => sockets.at(-1)?.destroySoon()],
    ["ends with an error", (stream: ServerHttp2Stream) => stream.session?.destroy(new Error("no"))],
  ])("that %s fails its calls, which may be repeated", async (_, end) => {
    answer = end;
    const error = await failure();
    expect(error.code).toBe(Code.Unavailable);
    expect(isRetryable(errorFromCall(error))).toBe(true);
    answerWith(message());
    expect((await lookUp()).record?.owner).toBe(OWNER);
  });

  test("that can't be opened fails with UNAVAILABLE", async () => {
    server.close();
    await once(server, "close");
    expect((await failure()).code).toBe(Code.Unavailable);
  });

  test("that the client closes fails its calls with CANCELLED", async () => {
    answer = () => sessions.abort();
    expect((await failure()).code).toBe(Code.Canceled);
  });
});

describe("a cancelled call", () => {
  test("fails with DEADLINE_EXCEEDED, and the server is told", async () => {
    const untilCancelled = answerAndWatch(() => {});
    expect((await failure(lookUp({ timeoutMs: 50 }))).code).toBe(Code.DeadlineExceeded);
    await untilCancelled();
  });

  test("fails with CANCELLED and the signal's reason, and the server is told", async () => {
    const leaving = new AbortController();
    const reason = new Error("enough");
    const untilCancelled = answerAndWatch(() => leaving.abort(reason));
    expect(await failure(lookUp({ signal: leaving.signal }))).toMatchObject({
      code: Code.Canceled,
      cause: reason,
    });
    await untilCancelled();
  });

  test("is not made if the signal was aborted before", async () => {
    expect((await failure(lookUp({ signal: AbortSignal.abort() }))).code).toBe(Code.Canceled);
    expect(requests).toHaveLength(0);
  });

  test("fails in time while the connection is being opened", async () => {
    // No server answers at an address that is for documentation (RFC 5737), or the machine has no way there at
    // all.
    const nowhere = createUnaryTransport(
      new SessionManager("http://192.0.2.1:9"),
      credentialOf({ apiKey: "ow_x_y" }),
    );
    const call = createClient(IdempotencyService, nowhere).lookup({ key: "order-1" }, { timeoutMs: 50 });
    expect([Code.DeadlineExceeded, Code.Unavailable]).toContain((await failure(call)).code);
  });
});
