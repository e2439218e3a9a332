import { EventEmitter } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  BatchResponseSchema,
  BatchStreamRequestSchema,
  IdempotencyService,
} from "../../gen/onceward/v1/idempotency_pb.ts";
import { createArrivingBytes } from "../arriving-bytes.ts";
import { frameMessage } from "../grpc-messages.ts";
import type { Pipeline } from "../pipeline.ts";
import type { Route } from "../route.ts";
import { createUnreadReplies, createUnreadTotal } from "../unread-replies.ts";
import { createBatchStreams } from "./batch-stream.ts";

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

/** Answers each batch when it is told to. */
const pipeline: Pipeline = {
  answer: (_route, _incoming, encode) =>
    new Promise((resolve) => {
      answerNow = () => resolve(encode(REPLY));
    }),
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

/** A stream, on a connection that may have so much unread. */
async function open(maxUnreadBytes = 1000): Promise<FakeStream> {
  const routes = [{ method: IdempotencyService.method.batch } as unknown as Route];
  const streams = createBatchStreams({ routes, pipeline, timeoutMs: TIMEOUT_MS });
  const stream = new FakeStream();
  const unread = createUnreadReplies(maxUnreadBytes, createUnreadTotal());
  const connection = { unread, arriving: createArrivingBytes().ofConnection() };
  streams.ofConnection(connection)(stream as unknown as ServerHttp2Stream, {});
  // Its credential is judged.
  await vi.advanceTimersByTimeAsync(0);
  return stream;
}

function send(stream: FakeStream): void {
  const request = create(BatchStreamRequestSchema, { id: 1, items: [{}] });
  stream.emit("data", frameMessage(toBinary(BatchStreamRequestSchema, request)));
}

async function answer(): Promise<void> {
  answerNow();
  await vi.advanceTimersByTimeAsync(0);
}

test("a stream with nothing under way for half a minute is ended", async () => {
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

test("a connection with too many unread answers loses the stream that has one more", async () => {
  const stream = await open(1);
  send(stream);
  await answer();
  expect(stream.write).toHaveBeenCalledTimes(1);
  expect(stream.close).toHaveBeenCalledExactlyOnceWith(constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

test("a stream that is gone leaves no timer, and takes no answer", async () => {
  const stream = await open();
  send(stream);
  stream.close();
  await answer();
  expect(vi.getTimerCount()).toBe(0);
  expect(stream.write).not.toHaveBeenCalled();
});
