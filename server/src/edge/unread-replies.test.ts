import { EventEmitter } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { expect, test } from "vitest";
import { createUnreadReplies, createUnreadTotal } from "./unread-replies.ts";

test("there is room for answers until there are too many, and again once a stream is over", () => {
  const unread = createUnreadReplies(100, createUnreadTotal());
  const [one, other] = [new EventEmitter() as ServerHttp2Stream, new EventEmitter() as ServerHttp2Stream];
  unread.add(one, 60);
  expect(unread.isFull()).toBe(false);
  unread.add(other, 60);
  expect(unread.isFull()).toBe(true);
  one.emit("close");
  expect(unread.isFull()).toBe(false);
});

test("an answer of many on a stream counts until it is written", () => {
  const unread = createUnreadReplies(100, createUnreadTotal());
  const written: (() => void)[] = [];
  const stream = { write: (_: Buffer, done: () => void) => written.push(done) };
  unread.write(stream as unknown as ServerHttp2Stream, Buffer.alloc(60));
  unread.write(stream as unknown as ServerHttp2Stream, Buffer.alloc(60));
  expect(unread.isFull()).toBe(true);
  written[0]?.();
  expect(unread.isFull()).toBe(false);
});

test("what all connections leave unread together is bounded, too, and a call that comes then is refused", () => {
  const total = createUnreadTotal(100);
  const [one, other] = [createUnreadReplies(80, total, 10), createUnreadReplies(80, total, 10)];
  const stream = new EventEmitter();
  one.add(stream, 70);
  other.admit();
  other.add(new EventEmitter(), 40);
  expect([one.isFull(), other.isFull()]).toEqual([true, true]);
  expect(() => other.admit()).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
  stream.emit("close");
  other.admit();
});

test("a connection that reads is not refused because others do not", () => {
  const total = createUnreadTotal(100);
  const [one, other] = [createUnreadReplies(200, total, 10), createUnreadReplies(200, total, 10)];
  one.add(new EventEmitter(), 150);
  other.add(new EventEmitter(), 9);
  other.admit();
  expect([one.isFull(), other.isFull()]).toEqual([true, false]);
});
