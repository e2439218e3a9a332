import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import http2, {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { HealthImplementation } from "grpc-health-check";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { frameMessage } from "../grpc-protocol.ts";
import { createInboundBudget, createOutboundTotal } from "../memory-budgets.ts";
import { routesOf } from "../route.ts";
import { createGrpcServer } from "./server.ts";

const REQUEST_TIMEOUT_MS = 1000;
const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";
/** A HealthCheckRequest for the whole server, and responses. */
const [REQUEST, SERVING, SERVICE_UNKNOWN] = [Buffer.alloc(0), Buffer.of(0x08, 1), Buffer.of(0x08, 3)];

let session: ClientHttp2Session;

/** Starts a server whose own services have no handlers, and connects to it. */
beforeEach(async () => {
  const server = createGrpcServer({
    routes: routesOf(IdempotencyService, "CALLER", {} as never),
    pipeline: {
      answer: () => Promise.reject(new Error("no test calls a service of ours")),
      callsInFlight: () => 0,
      authenticate: () => Promise.reject(new Error("no test calls a service of ours")),
    },
    inboundBudget: createInboundBudget(),
    outboundTotal: createOutboundTotal(),
    connectionAgeMs: 60_000,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    maxPerAddress: 10,
    tls: undefined,
  });
  const port = await server.listen("127.0.0.1", 0);
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

test("health is answered by grpc-js", async () => {
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
  },
);

test("grpc-js decompresses nothing: it reads messages that are not compressed, and refuses the others", async () => {
  const headers = { "grpc-encoding": "gzip" };
  expect(await call(CHECK, frameMessage(REQUEST), headers)).toMatchObject({ message: SERVING });
  const compressed = frameMessage(gzipSync(REQUEST));
  compressed[0] = 1;
  expect(await call(CHECK, compressed, headers)).toMatchObject({ grpcStatus: Code.Unimplemented });
});

/** Collects the streams that reach a server of this process until the test ends. */
function serverStreams(): ServerHttp2Stream[] {
  const streams: ServerHttp2Stream[] = [];
  const onStream = (message: unknown) => {
    streams.push((message as { readonly stream: ServerHttp2Stream }).stream);
  };
  diagnostics.subscribe("http2.server.stream.created", onStream);
  onTestFinished(() => {
    diagnostics.unsubscribe("http2.server.stream.created", onStream);
  });
  return streams;
}

test("a watch of an unknown service is answered SERVICE_UNKNOWN, stays open, and leaves no trace", async () => {
  const addWatcher = vi.spyOn(HealthImplementation.prototype as unknown as Watched, "addWatcher");
  const watch = open(WATCH);
  watch.on("error", () => {});
  watch.end(frameMessage(Buffer.from("\n\x07unknown")));
  expect((await once(watch, "data"))[0]).toEqual(frameMessage(SERVICE_UNKNOWN));
  expect(watch.closed).toBe(false);
  expect(addWatcher).not.toHaveBeenCalled();
});

/** A private method of grpc-health-check: it keeps each name that it is given. */
interface Watched {
  addWatcher(service: string): void;
}

test("a session that ends, ends its connection to grpc-js and the streams of it", async () => {
  const streams = serverStreams();
  const watch = open(WATCH);
  watch.on("error", () => {});
  watch.end(frameMessage(REQUEST));
  await once(watch, "data");
  const forwarded = streams.map((stream) => ({ stream, session: stream.session }));
  expect(forwarded).toHaveLength(2);
  session.destroy();
  await expect
    .poll(() => forwarded.map((each) => each.stream.closed && each.session?.destroyed))
    .toEqual([true, true]);
});

test("a caller that cancels a call ends it for grpc-js", async () => {
  const streams = serverStreams();
  const watch = open(WATCH);
  watch.end(frameMessage(REQUEST));
  await once(watch, "data");
  watch.close(http2.constants.NGHTTP2_CANCEL);
  await expect.poll(() => streams.map(({ closed }) => closed)).toEqual([true, true]);
});

test("a session gets another connection to grpc-js after HTTP/2 ended one for its many resets", async () => {
  // More than the resets that Node's HTTP/2 accepts at once; the server resets these because they are slow.
  const slow = Array.from({ length: 1500 }, () => open(CHECK));
  // Not `once`, which rejects on the errors of the streams that were open when HTTP/2 ended the connection.
  const closed = (stream: http2.ClientHttp2Stream) =>
    new Promise((resolve) => {
      stream
        .on("error", () => {})
        .on("close", resolve)
        .resume();
    });
  await Promise.all(slow.map(closed));
  await expect
    .poll(() => call(CHECK, frameMessage(REQUEST)).catch(() => undefined))
    .toMatchObject({ grpcStatus: 0, message: SERVING });
});
