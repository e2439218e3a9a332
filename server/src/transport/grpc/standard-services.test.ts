import type { ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { createOutboundBudget, createOutboundTotal } from "../bounds/memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import { Health } from "./health.ts";
import { answerReflection, collectDescriptors } from "./reflection.ts";

/** Requests in frames: a watch of the whole server, and `list_services: "*"`. */
const WATCH_SERVER = Buffer.of(0, 0, 0, 0, 0);
const LIST_SERVICES = Buffer.of(0, 0, 0, 0, 3, 0x3a, 1, 0x2a);

/** A stream of a peer that reads everything, and the status with which it ended. */
class Stream extends Duplex {
  headersSent = false;
  grpcStatus: number | undefined;
  messages = 0;

  constructor() {
    super();
    this.once("finish", () => this.emit("wantTrailers"));
  }

  respond(headers: Record<string, unknown>): void {
    this.headersSent = true;
    this.#end(headers);
  }

  sendTrailers(trailers: Record<string, unknown>): void {
    this.#end(trailers);
  }

  override _read(): void {}

  override _write(_: unknown, __: unknown, done: () => void): void {
    this.messages++;
    done();
  }

  #end(headers: Record<string, unknown>): void {
    const status = headers["grpc-status"];
    if (status !== undefined) this.grpcStatus = Number(status);
  }
}

const health = new Health([IdempotencyService.typeName]);
const descriptors = collectDescriptors([IdempotencyService]);

/** Returns a function that opens a stream on a new connection, whose caller has a credential. */
function connect(service: "health" | "reflection"): () => Stream {
  const outbound = createOutboundBudget(Number.POSITIVE_INFINITY, createOutboundTotal());
  const pipeline = { authenticate: () => Promise.resolve({}) } as unknown as Pipeline;
  const open = new Set<ServerHttp2Stream>();
  return () => {
    const stream = new Stream();
    const opened = stream as unknown as ServerHttp2Stream;
    if (service === "health") health.watch(opened, open);
    else answerReflection(opened, {}, { pipeline, outbound, peer: "10.0.0.1" }, open, descriptors);
    return stream;
  };
}

/** Sends messages and the end of a request; resolves when the stream has answered what it will. */
async function send(stream: Stream, messages: readonly Buffer[]): Promise<void> {
  await new Promise(setImmediate);
  for (const message of messages) stream.push(message);
  stream.push(null);
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
}

test("a process has 10,000 health watches; the next one is refused", async () => {
  for (let connection = 0; connection < 625; connection++) {
    const open = connect("health");
    await Promise.all(Array.from({ length: 16 }, () => send(open(), [WATCH_SERVER])));
  }
  const next = connect("health")();
  expect(next.grpcStatus).toBe(Code.ResourceExhausted);
});

test("a connection has 8 reflection streams; the next one is refused", async () => {
  const open = connect("reflection");
  const streams = Array.from({ length: 9 }, open);
  expect(streams.map(({ grpcStatus }) => grpcStatus)).toEqual([...Array(8), Code.ResourceExhausted]);
});

test("a reflection stream answers 1,000 requests, and ends with the next one", async () => {
  const stream = connect("reflection")();
  await send(stream, Array(1001).fill(LIST_SERVICES));
  expect([stream.messages, stream.grpcStatus]).toEqual([1000, Code.ResourceExhausted]);
});
