import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createOnceward } from "@onceward/client";
import { OutcomeUnknownError } from "@onceward/client/http";
import { parseConfig } from "@onceward/http-proxy";
import { expect, onTestFinished, test, vi } from "vitest";
import { callUpstream } from "../../../clients/http-proxy/src/guarded-call.ts";
import { pass } from "../../../clients/http-proxy/src/pass.ts";
import { HttpProxy } from "../../../clients/http-proxy/src/proxy.ts";
import { Upstream } from "../../../clients/http-proxy/src/upstream.ts";

/** What the proxy does if a service, or a client, uses its connection in another way than Node does. */

const ROUTES = "routes: [{ path: /charges, namespace: charges, caller: { constant: all } }]";
/** Much longer than any case: a proxy that stops answering fails the case, by its name. */
const DEADLINE_MS = 20_000;
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Starts a service that is a function of a connection and of its number; returns where it listens. */
async function startService(onConnection: (socket: Socket, count: number) => void) {
  let count = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onConnection(socket, ++count);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** Starts a proxy before a service; returns a function that sends bytes on a new connection, and returns all that comes back. */
async function startProxy(onConnection: (socket: Socket, count: number) => void) {
  const upstream = await startService(onConnection);
  const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "ow_a_b" });
  const proxy = new HttpProxy({ onceward, upstream, routes: parseConfig(ROUTES, "routes.yaml"), warn() {} });
  proxy.server.listen(0, "127.0.0.1");
  await once(proxy.server, "listening");
  onTestFinished(async () => {
    await proxy.drain(0);
    await onceward.close();
  });
  return async (bytes: string) => {
    const socket = connect((proxy.server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    socket.write(Buffer.from(bytes, "latin1"));
    return await text(socket);
  };
}

/** Returns a service that answers everything with these bytes, and what it received. */
function answering(answer: string) {
  const received: string[] = [];
  const onConnection = (socket: Socket) =>
    void socket.on("data", (bytes) => {
      received.push(bytes.toString("latin1"));
      socket.write(Buffer.from(answer, "latin1"));
    });
  return { received, onConnection };
}

const GET = "GET /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

test.each<[what: string, answer: string, passed: RegExp]>([
  [
    "control characters in the status' text",
    OK.replace("OK", "O\x01K\x7f"),
    /^HTTP\/1\.1 200 O\?K\?\r\n[\s\S]*ok$/,
  ],
  ["a status of another class", OK.replace("200", "099"), /^HTTP\/1\.1 502 /],
  [
    "a protocol that the client did not ask for",
    "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    /^HTTP\/1\.1 502 /,
  ],
  ["101 without a protocol", "HTTP/1.1 101 S\r\n\r\n", /^HTTP\/1\.1 502 /],
])(
  "a service that answers with %s does not stop the proxy",
  { timeout: DEADLINE_MS },
  async (_, answer, passed) => {
    const send = await startProxy(answering(answer).onConnection);
    expect(await send(GET)).toMatch(passed);
    expect(await send(GET)).toMatch(passed);
  },
);

test("a guarded call answered by another protocol is unknown, without control characters", {
  timeout: DEADLINE_MS,
}, async () => {
  const call = async (answer: string) => {
    const upstream = new Upstream(await startService(answering(answer).onConnection));
    const incoming = Object.assign(new IncomingMessage(new Socket()), { method: "POST", url: "/charges" });
    const report = vi.fn();
    const facts = { incoming, body: Buffer.from("{}"), timeoutMs: 60_000, traceHeaders: undefined, report };
    return { calling: callUpstream(upstream, facts, undefined), report };
  };
  const switched = await call("HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  await expect(switched.calling).rejects.toThrow(OutcomeUnknownError);
  expect(switched.report.mock.lastCall).toEqual(["unknown"]);
  expect((await (await call(OK.replace("OK", "O\x01K"))).calling).sent.statusMessage).toBe("O?K");
});

test("a request without an effect is resent if its shared connection closes; no other is", {
  timeout: DEADLINE_MS,
}, async () => {
  const lines: string[] = [];
  const send = await startProxy((socket, connection) => {
    let requests = 0;
    socket.on("data", (bytes) => {
      lines.push(`${connection}: ${bytes.toString("latin1").split(" ", 1)}`);
      if (requests++ === 0) socket.write(OK);
      else socket.destroy();
    });
  });
  const post = "POST /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  for (const request of [GET, GET, post]) expect(await send(request)).toMatch(/^HTTP\/1\.1 200 /);
  expect(lines).toEqual(["1: GET", "1: GET", "2: GET", "3: POST"]);
});

test.each<[what: string, method: string, answer: string]>([
  ["a response to HEAD, whose body may still come", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"],
  ["304, whose body may still come", "GET", "HTTP/1.1 304 Not Modified\r\n\r\n"],
  ["an interim response", "GET", `HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${OK}`],
  ["more bytes than the response has", "GET", `${OK}${OK.replace("ok", "no")}`],
])("a connection with %s is not shared with another request", async (_, method, answer) => {
  const lines: string[] = [];
  const send = await startProxy((socket, connection) => {
    socket.on("data", (bytes) => {
      lines.push(`${connection}: ${bytes.toString("latin1").split(" ", 1)}`);
      socket.write(lines.length === 1 ? answer : OK);
    });
  });
  await send(GET.replace("GET", method));
  expect(await send(GET)).toMatch(/ok$/);
  expect(lines).toEqual([`1: ${method}`, "2: GET"]);
});

test("a response that is whole stays so if the request to the service fails afterwards", {
  timeout: DEADLINE_MS,
}, async () => {
  const upstream = new Upstream(await startService(answering(OK).onConnection));
  const send = vi.spyOn(upstream, "send");
  const facts = { method: "PUT", url: "/free", headers: { "content-length": "4" } };
  const incoming = Object.assign(new IncomingMessage(new Socket()), facts);
  // Without a connection, none of it is flushed.
  const outgoing = new ServerResponse(incoming);
  const passed = pass(upstream, incoming, outgoing);
  incoming.push("half");
  await vi.waitUntil(() => outgoing.writableEnded, { timeout: DEADLINE_MS });
  send.mock.results[0]?.value.emit("error", new Error("read ECONNRESET"));
  expect(outgoing.destroyed).toBe(false);
  outgoing.destroy();
  outgoing.emit("close");
  await passed;
});

test("a request of HTTP/1.0 without a host reaches the service with one", {
  timeout: DEADLINE_MS,
}, async () => {
  const { received, onConnection } = answering(OK);
  const send = await startProxy(onConnection);
  expect(await send("GET /free HTTP/1.0\r\n\r\n")).toMatch(/ok$/);
  expect(received.join("")).toMatch(/^GET \/free HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/);
});

test("neither headers nor trailers of a client can be taken for the proxy's own", {
  timeout: DEADLINE_MS,
}, async () => {
  const { received, onConnection } = answering(OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  const send = await startProxy(onConnection);
  const forged = "onceward.derived.key: forged\r\nOnceward_Attempt: forged\r\n";
  await send(GET.replace("\r\n\r\n", `\r\n${forged}\r\n`));
  const trailers = `onceward-fencing-token: forged\r\n${forged}Keep-Alive: forged\r\nX-Sum: 1\r\n`;
  const head =
    "PUT /free HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n";
  await send(`${head}\r\n1\r\na\r\n0\r\n${trailers}\r\n`);
  expect(received.join("")).not.toContain("forged");
});
