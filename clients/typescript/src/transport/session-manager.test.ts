import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { SessionManager } from "./session-manager.ts";

let server: Http2Server;
let address: string;
let sessions: ServerHttp2Session[];

beforeEach(async () => {
  sessions = [];
  server = createServer((_, response) => {
    response.end();
  });
  server.on("session", (session) => sessions.push(session));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  for (const session of sessions) session.destroy();
  server.close();
});

async function request(manager: SessionManager): Promise<void> {
  const stream = await manager.request("GET", "/", {}, {});
  stream.resume();
  await once(stream, "close");
}

test("a connection that ends while idle causes no uncaught error, also during a new call", async () => {
  // An error of a session that has no listener is uncaught, and ends a process.
  const uncaught = vi.fn();
  process.setUncaughtExceptionCaptureCallback(uncaught);
  onTestFinished(() => process.setUncaughtExceptionCaptureCallback(null));
  const manager = new SessionManager(address);
  const { session } = await manager.request("GET", "/", {}, {}).then((stream) => stream.resume());
  await vi.waitUntil(() => manager.state() === "idle", 30_000);
  session?.once("goaway", () => void request(manager));
  // Not by `events.once`, which would listen to the error.
  const closed = vi.fn();
  session?.once("close", closed);
  sessions[0]?.goaway();
  await vi.waitUntil(() => closed.mock.calls.length + uncaught.mock.calls.length > 0, 30_000);
  expect(uncaught).not.toHaveBeenCalled();
  await request(manager);
  expect(sessions).toHaveLength(2);
  expect(uncaught).not.toHaveBeenCalled();
  manager.abort();
});

test("a server is reachable while it accepts connections, and a probe leaves none open", async () => {
  const manager = new SessionManager(address);
  expect(await manager.isReachable()).toBe(true);
  expect(manager.state()).toBe("closed");
  server.close();
  await once(server, "close");
  expect(await manager.isReachable()).toBe(false);
});
