import { EventEmitter } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import {
  BatchResponseSchema,
  BatchStreamRequestSchema,
  IdempotencyService,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { createInboundBudget, createOutboundBudget, createOutboundTotal } from "../bounds/memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import { frameMessage } from "../receive/read-body.ts";
import type { Route } from "../route.ts";
import { type BatchConnection, createBatchStreams } from "./batch-stream.ts";

const TIMEOUT_MS = 10_000;
const IDLE_MS = 30_000;
const REPLY = create(BatchResponseSchema, { items: [{}] });

let answerNow: () => void;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Answers each batch when the test calls `answerNow`. */
const pipeline: Pipeline = {
  answer: (_route, _incoming, encode) =>
    new Promise((resolve) => {
      answerNow = () => resolve(encode(REPLY));
    }),
  callsInFlight: () => 0,
  authenticate: async () => ({ role: "OPERATOR", actor: "a key", goodUntilMs: Number.POSITIVE_INFINITY }),
};

class FakeStream extends EventEmitter {
  closed = false;
  destroyed = false;
  headersSent = false;
  writableLength = 0;
  readonly respond = vi.fn(() => {
    this.headersSent = true;
  });
  readonly write = vi.fn();
  readonly end = vi.fn();
  readonly close = vi.fn(() => {
    this.closed = true;
    this.emit("close");
  });
  pause() {}
  resume() {}
  isPaused() {
    return false;
  }
}

function beginNow(begin: () => void): undefined {
  begin();
}

/** Opens a stream on a connection with an outbound budget; resolves when its credential is verified. */
async function open(maxUnflushedBytes = 1000): Promise<FakeStream> {
  return (await openOn(maxUnflushedBytes)).stream;
}

async function openOn(maxUnflushedBytes: number, inTurn: BatchConnection["inTurn"] = beginNow) {
  const routes = [{ method: IdempotencyService.method.batch } as unknown as Route];
  const stream = new FakeStream();
  const outbound = createOutboundBudget(maxUnflushedBytes, createOutboundTotal());
  const connection = {
    pipeline,
    outbound,
    inbound: createInboundBudget().ofConnection(),
    peer: undefined,
    inTurn,
  };
  const streams = createBatchStreams(routes, TIMEOUT_MS)(connection);
  streams.answer(stream as unknown as ServerHttp2Stream, {});
  await vi.advanceTimersByTimeAsync(0);
  return { streams, stream };
}

function send(stream: FakeStream): void {
  const request = create(BatchStreamRequestSchema, { id: 1, items: [{}] });
  stream.emit("data", frameMessage(toBinary(BatchStreamRequestSchema, request)));
}

async function answer(): Promise<void> {
  answerNow();
  await vi.advanceTimersByTimeAsync(0);
}

test("a stream without a batch in flight for half a minute is ended", async () => {
  const stream = await open();
  vi.advanceTimersByTime(IDLE_MS / 2);
  send(stream);
  vi.advanceTimersByTime(10 * IDLE_MS);
  await answer();
  vi.advanceTimersByTime(IDLE_MS - 1);
  expect(stream.end).not.toHaveBeenCalled();
  vi.advanceTimersByTime(TIMEOUT_MS);
  expect(stream.end).toHaveBeenCalledTimes(1);
  expect(stream.close).not.toHaveBeenCalled();
});

test("a stream that has been ended, and whose client does not end its side, is closed", async () => {
  const stream = await open();
  vi.advanceTimersByTime(IDLE_MS);
  expect(stream.end).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(TIMEOUT_MS);
  expect(stream.close).toHaveBeenCalledExactlyOnceWith(constants.NGHTTP2_CANCEL);
});

test("a batch begins in its address's turn; until then no other of its stream is taken", async () => {
  const begins: (() => void)[] = [];
  const drop = vi.fn();
  const { stream } = await openOn(1000, (begin) => {
    begins.push(begin);
    return drop;
  });
  const answered = vi.spyOn(pipeline, "answer");
  onTestFinished(() => answered.mockRestore());
  send(stream);
  send(stream);
  expect([answered.mock.calls.length, begins.length]).toEqual([0, 1]);
  begins[0]?.();
  expect([answered.mock.calls.length, begins.length]).toEqual([1, 2]);
  expect(drop).not.toHaveBeenCalled();
  stream.close();
  expect(drop).toHaveBeenCalledTimes(1);
});

test("with 16 batches in progress, no more is read until one is answered", async () => {
  const stream = await open();
  const answered = vi.spyOn(pipeline, "answer");
  onTestFinished(() => answered.mockRestore());
  for (let batch = 0; batch < 20; batch++) send(stream);
  expect(answered).toHaveBeenCalledTimes(16);
  await answer();
  expect(answered).toHaveBeenCalledTimes(17);
});

test("an answer that exhausts the connection's outbound budget closes its stream", async () => {
  const stream = await open(1);
  send(stream);
  await answer();
  expect(stream.write).toHaveBeenCalledTimes(1);
  expect(stream.close).toHaveBeenCalledExactlyOnceWith(constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

test("a stream that is closed leaves no timer, and no answer is written to it", async () => {
  const stream = await open();
  send(stream);
  stream.close();
  await answer();
  expect(vi.getTimerCount()).toBe(0);
  expect(stream.write).not.toHaveBeenCalled();
});

test("a draining connection's stream ends once the next second's batches are answered", async () => {
  const { streams, stream } = await openOn(1000);
  streams.leave();
  vi.advanceTimersByTime(999);
  send(stream);
  vi.advanceTimersByTime(1);
  expect(stream.end).not.toHaveBeenCalled();
  await answer();
  expect(stream.end).toHaveBeenCalledTimes(1);
});
