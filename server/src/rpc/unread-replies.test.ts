import { EventEmitter } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { expect, test } from "vitest";
import { createUnreadReplies } from "./unread-replies.ts";

const newStream = () => new EventEmitter() as ServerHttp2Stream;

test("answers have room until there are too many, and again once a stream is over", () => {
  const { admit } = createUnreadReplies(100);
  const first = newStream();
  expect([admit(first, 60), admit(newStream(), 40), admit(newStream(), 1)]).toEqual([true, true, false]);
  first.emit("close");
  expect([admit(newStream(), 61), admit(newStream(), 60)]).toEqual([false, true]);
});

test("an answer that is alone has room, however large", () => {
  const { admit } = createUnreadReplies(100);
  expect([admit(newStream(), 1000), admit(newStream(), 1)]).toEqual([true, false]);
});
