import { EventEmitter, once } from "node:events";
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openWindows,
  PREFACE,
} from "../../../../test/support/network/http2-frames.ts";
import { createUnacknowledged, SessionLifecycle, type SessionTimes } from "./session.ts";

const NEVER_MS = 1e9;
const TIMES: SessionTimes = {
  maxAgeMs: NEVER_MS,
  maxIdleMs: NEVER_MS,
  drainGraceMs: NEVER_MS,
  keepaliveIntervalMs: NEVER_MS,
  keepaliveTimeoutMs: NEVER_MS,
};

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

class FakeSession extends EventEmitter {
  destroyed = false;
  /** The callbacks of PINGs that are not answered yet. */
  readonly pings: ((error: Error | null) => void)[] = [];
  readonly close = vi.fn();
  ping(answered: (error: Error | null) => void): void {
    this.pings.push(answered);
  }
}

function begin(times: Partial<SessionTimes>) {
  const session = new FakeSession();
  const cut = vi.fn();
  const onDraining = vi.fn();
  const lifecycle = new SessionLifecycle(
    session as unknown as ServerHttp2Session,
    { destroy: cut },
    { ...TIMES, ...times },
    onDraining,
  );
  const openStream = () => {
    const stream = new EventEmitter();
    lifecycle.streamOpened(stream as unknown as ServerHttp2Stream);
    return stream;
  };
  return { session, cut, lifecycle, onDraining, openStream };
}

test("a session that is idle for too long drains, whether or not it had a stream", () => {
  const [one, other] = [begin({ maxIdleMs: 1000 }), begin({ maxIdleMs: 1000 })];
  const stream = one.openStream();
  vi.advanceTimersByTime(500);
  stream.emit("close");
  vi.advanceTimersByTime(500);
  expect(other.session.close).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(499);
  expect(one.session.close).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(one.session.close).toHaveBeenCalledTimes(1);
});

test("a session is not idle while one stream is open, however long", () => {
  const { session, openStream } = begin({ maxIdleMs: 1000 });
  const [one, other] = [openStream(), openStream()];
  one.emit("close");
  vi.advanceTimersByTime(10_000);
  expect(session.close).not.toHaveBeenCalled();
  other.emit("close");
  vi.advanceTimersByTime(1000);
  expect(session.close).toHaveBeenCalledTimes(1);
});

test("a session drains at its age, give or take a tenth, with streams open", () => {
  const { session, openStream, onDraining } = begin({ maxAgeMs: 1000 });
  openStream();
  vi.advanceTimersByTime(899);
  expect(session.close).not.toHaveBeenCalled();
  vi.advanceTimersByTime(201);
  expect(session.close).toHaveBeenCalledTimes(1);
  expect(onDraining).toHaveBeenCalledTimes(1);
});

test("a session that drains is cut after the grace time, and not before", () => {
  const { cut, lifecycle, openStream } = begin({ drainGraceMs: 70_000 });
  openStream();
  lifecycle.drain();
  vi.advanceTimersByTime(69_999);
  expect(cut).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(cut).toHaveBeenCalledTimes(1);
});

test("keepalive does not cut a session that drains", () => {
  const { session, cut, lifecycle, openStream } = begin({ keepaliveIntervalMs: 30, keepaliveTimeoutMs: 10 });
  openStream();
  vi.advanceTimersByTime(30);
  lifecycle.drain();
  // Node answers so for a session that closes.
  session.pings[0]?.(new Error("HTTP2 ping cancelled"));
  vi.advanceTimersByTime(10_000);
  expect(session.pings).toHaveLength(1);
  expect(cut).not.toHaveBeenCalled();
});

test("a session drains once", () => {
  const { session, lifecycle, onDraining } = begin({ maxAgeMs: 1000 });
  lifecycle.drain();
  lifecycle.drain();
  vi.advanceTimersByTime(2000);
  expect(session.close).toHaveBeenCalledTimes(1);
  expect(onDraining).toHaveBeenCalledTimes(1);
});

test("a session whose client sends GOAWAY drains", () => {
  const { session, onDraining } = begin({});
  session.emit("goaway");
  expect(onDraining).toHaveBeenCalledTimes(1);
});

test("a PING is sent each interval, and a session that does not answer one in time is cut", () => {
  const { session, cut } = begin({ keepaliveIntervalMs: 30, keepaliveTimeoutMs: 10 });
  vi.advanceTimersByTime(30);
  session.pings[0]?.(null);
  vi.advanceTimersByTime(30);
  expect(session.pings).toHaveLength(2);
  vi.advanceTimersByTime(9);
  expect(cut).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(cut).toHaveBeenCalledTimes(1);
});

test("a session that Node destroyed, and whose connection is still open at the next PING, is cut", () => {
  const { session, cut } = begin({ keepaliveIntervalMs: 30 });
  session.destroyed = true;
  vi.advanceTimersByTime(30);
  expect(cut).toHaveBeenCalledTimes(1);
});

describe("on a real connection", () => {
  beforeEach(() => {
    vi.useRealTimers();
  });

  test("a client that does not close its side after the GOAWAY is cut after the grace time", async () => {
    const { socket, lifecycle } = await connected({ drainGraceMs: 200 });
    lifecycle.drain();
    await once(socket, "close");
  });

  test("a client that reads nothing, and so does not answer a PING, is cut", async () => {
    const { socket, send } = await connected({ keepaliveIntervalMs: 500, keepaliveTimeoutMs: 100 });
    const request = { ":method": "GET", ":scheme": "http", ":path": "/", ":authority": "localhost" };
    const flags = END_HEADERS | END_STREAM;
    send(Buffer.concat([openWindows(), frame(FRAME.headers, flags, 1, headerBlock(request))]));
    await once(socket, "close");
  });

  /** Returns the server's side of a session with a client that reads nothing and never closes its side. */
  async function connected(times: Partial<SessionTimes>) {
    const listener = createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    const client = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
    const [socket] = (await once(listener, "connection")) as [Socket];
    onTestFinished(() => {
      for (const each of [client, socket]) each.destroy();
      listener.close();
    });
    const session = performServerHandshake(socket).on("error", () => {});
    // More than the buffers of the operating system hold.
    session.on("stream", (stream) => stream.on("error", () => {}).end(Buffer.alloc(64 * 1024 * 1024)));
    const lifecycle = new SessionLifecycle(session, socket, { ...TIMES, ...times }, () => {});
    client.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)]));
    await once(session, "remoteSettings");
    return { socket, lifecycle, send: (bytes: Buffer) => client.write(bytes) };
  }
});

test("a session that is closed leaves no timer, and does not drain", () => {
  const { session, lifecycle, onDraining, openStream } = begin({});
  const stream = openStream();
  session.emit("close");
  stream.emit("close");
  lifecycle.drain();
  expect(vi.getTimerCount()).toBe(0);
  expect(onDraining).not.toHaveBeenCalled();
});

test("a session that closes while it drains leaves no timer", () => {
  const { session, lifecycle } = begin({});
  lifecycle.drain();
  session.emit("close");
  expect(vi.getTimerCount()).toBe(0);
});

test("connections without a settings acknowledgement beyond the limit are cut, oldest first", () => {
  const unacknowledged = createUnacknowledged(2);
  onTestFinished(unacknowledged.stop);
  const [acknowledged, oldest, second, third] = [1, 2, 3, 4].map(() => {
    const connection = { session: new FakeSession(), destroy: vi.fn() };
    unacknowledged.watch(connection.session as unknown as ServerHttp2Session, connection);
    return connection;
  });
  acknowledged?.session.emit("localSettings");
  vi.advanceTimersByTime(2000);
  const cuts = [acknowledged, oldest, second, third].map((each) => each?.destroy.mock.calls.length);
  expect(cuts).toEqual([0, 1, 0, 0]);
});
