import { once } from "node:events";
import http2, { type ClientHttp2Session, type ClientHttp2Stream, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { untilStill } from "../../../../test/support/attacks/until-still.ts";
import { Health } from "../../gen/grpc/health/v1/health_pb.ts";
import { ServerReflectionRequestSchema } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import {
  createOutboundTotal,
  type OutboundTotal,
  outboundOfGrpcConnection,
} from "../bounds/memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import { frameMessage } from "../receive/read-body.ts";
import { answerReflection, collectDescriptors } from "./reflection.ts";

const SERVICE = IdempotencyService.typeName;
const descriptors = collectDescriptors([IdempotencyService, Health]);

test.each(["google.rpc.ErrorInfo", "google.rpc.BadRequest", "google.rpc.RetryInfo"])(
  "%s, a detail of errors, is known",
  async (symbol) => {
    expect(filesWith(symbol).map((file) => file.name)).toContain("google/rpc/error_details.proto");
  },
);

const STREAMS = 8;
const REQUESTS = 200;
const KIB = 1024;
/** A stream keeps 64 KiB of answers, and the answer that exceeds them. */
const MAX_KEPT_BYTES = STREAMS * (64 + 32) * KIB;

test("answers that are not read are kept up to a limit, and the others follow when they are read", async () => {
  const outboundTotal = createOutboundTotal();
  const { streams, ping } = await askAndReadNothing(outboundTotal);
  const keptBytes = await untilStill(() => outboundTotal.bytes, ping);
  expect(keptBytes).toBeGreaterThan(STREAMS * 16 * KIB);
  expect(keptBytes).toBeLessThan(MAX_KEPT_BYTES);

  const received = await Promise.all(streams.map((stream) => buffer(stream)));
  const allBytes = received.reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(allBytes).toBeGreaterThan(5 * MAX_KEPT_BYTES);
  expect(outboundTotal.bytes).toBe(0);
});

test("while unread answers fill the process, a connection over its share gets no more", async () => {
  const { streams } = await askAndReadNothing(createOutboundTotal(0));
  const statuses = await Promise.all(streams.map(statusOf));
  expect(statuses).toContain(`${Code.ResourceExhausted}`);
});

/** Opens streams that ask for more than they read: nothing. `ping` resolves once the server has answered on the connection. */
async function askAndReadNothing(outboundTotal: OutboundTotal) {
  const session = await connectToReflection(outboundTotal);
  const messageRequest = { case: "fileContainingSymbol", value: SERVICE } as const;
  const request = toBinary(
    ServerReflectionRequestSchema,
    create(ServerReflectionRequestSchema, { messageRequest }),
  );
  const streams = Array.from({ length: STREAMS }, () => session.request({ ":method": "POST" }));
  for (const stream of streams) stream.end(Buffer.concat(Array(REQUESTS).fill(frameMessage(request))));
  await Promise.all(streams.map((stream) => once(stream, "response")));
  return { streams, ping: promisify((done: () => void) => void session.ping(done)) };
}

/** Reads a stream to its end. Resolves with its status. */
async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  const trailers = once(stream, "trailers");
  stream.resume();
  const [{ "grpc-status": status }] = await trailers;
  return status;
}

/** Connects to a server of reflection that counts its unread answers in `outboundTotal`. */
async function connectToReflection(outboundTotal: OutboundTotal): Promise<ClientHttp2Session> {
  const pipeline: Pipeline = {
    answer: () => Promise.reject(new Error("reflection answers no call of the services")),
    callsInFlight: () => 0,
    authenticate: async () => ({ role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY }),
  };
  const connection = { pipeline, outbound: outboundOfGrpcConnection(outboundTotal), peer: undefined };
  const open = new Set<ServerHttp2Stream>();
  const server = http2.createServer();
  server.on("stream", (stream: ServerHttp2Stream, headers) =>
    answerReflection(stream, headers, connection, open, descriptors),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const session = http2.connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  return session;
}

/** The files that reflection answers for a symbol: the one that declares it, and its imports. */
function filesWith(symbol: string): readonly FileDescriptorProto[] {
  return (descriptors.bySymbol(symbol) ?? []).map(({ proto }) => proto);
}
