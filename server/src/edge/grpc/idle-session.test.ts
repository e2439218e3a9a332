import { EventEmitter } from "node:events";
import type { Http2Session, Http2Stream } from "node:http2";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { closeWhenIdle } from "./idle-session.ts";

const IDLE_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A connection, and how to open a stream on it. */
function setUp() {
  const close = vi.fn();
  const session = Object.assign(new EventEmitter(), { close });
  const watch = closeWhenIdle(session as unknown as Http2Session, IDLE_MS);
  const open = () => {
    const stream = new EventEmitter();
    watch(stream as unknown as Http2Stream);
    return stream;
  };
  return { session, close, open };
}

test("a connection on which nothing was under way for so long is asked to leave", () => {
  const { close, open } = setUp();
  const stream = open();
  vi.advanceTimersByTime(IDLE_MS / 2);
  stream.emit("close");
  vi.advanceTimersByTime(IDLE_MS - 1);
  expect(close).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(close).toHaveBeenCalledTimes(1);
});

test("a connection is not idle while one stream is open, however long", () => {
  const { close, open } = setUp();
  const [one, two] = [open(), open()];
  one.emit("close");
  vi.advanceTimersByTime(10 * IDLE_MS);
  expect(close).not.toHaveBeenCalled();
  two.emit("close");
  vi.advanceTimersByTime(IDLE_MS);
  expect(close).toHaveBeenCalledTimes(1);
});

test("a connection that is gone leaves no timer", () => {
  const { session } = setUp();
  session.emit("close");
  expect(vi.getTimerCount()).toBe(0);
});
