import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { IncomingMessage, type RequestListener, request, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import { callUpstream, NotSentError } from "../../../clients/http-proxy/src/guarded-call.ts";
import { Upstream } from "../../../clients/http-proxy/src/upstream.ts";
import { formatApiKey, generateApiKey } from "../../../server/src/access/api-key.ts";
import { makeCertificate } from "../../support/network/certificates.ts";
import { newDir } from "../../support/new-dir.ts";
import { cliWith } from "../../support/processes/cli.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { problemOf, send } from "../http/http-client.ts";
import { ROUTES, startWorld } from "./proxied-world.ts";

const world = useServer();
const README = new URL("../../../clients/http-proxy/README.md", import.meta.url);
const MIB = 1024 * 1024;
const LOAD = {
  ...{ connections: 9, requests: 9, heldBytes: 9 * MIB },
  ...{ unreadMs: 60_000, bodyMs: 60_000, idleMs: 60_000 },
};
const charge: RequestListener = (req, res) => {
  req.resume().on("end", () => {
    res.setHeader("Set-Cookie", ["session=secret", "theme=dark"]);
    res.writeHead(201, { "content-type": "application/json" }).end('{"charge":1}');
  });
};

test("a guarded request runs once with derived key and token; a duplicate is replayed", async () => {
  const effect = vi.fn(charge);
  const { charge: post, records, metrics } = await startWorld(world, effect);
  const forged = {
    "Onceward-Derived-Key": "forged",
    "onceward-fencing-token": "99",
    onceward_attempt: "7",
    "proxy-authorization": "x",
  };
  const first = await post({ headers: forged });
  expect(first).toMatchObject({ status: 201, body: Buffer.from('{"charge":1}') });
  expect(first.headers["set-cookie"]).toBe("session=secret,theme=dark");
  const replay = await post();
  expect(replay).toMatchObject({ status: 201, body: Buffer.from('{"charge":1}') });
  expect([replay.headers["idempotency-replayed"], replay.headers["set-cookie"]]).toEqual(["true", undefined]);
  expect(problemOf(await post({ body: "{}" }))).toMatchObject({ status: 422 });
  expect(effect).toHaveBeenCalledOnce();
  const { headers } = effect.mock.calls[0]?.[0] ?? {};
  expect(headers).toMatchObject({
    authorization: "Bearer secret-token",
    "onceward-derived-key": expect.stringMatching(/^[\w-]{43}$/),
    "onceward-fencing-token": expect.stringMatching(/^\d{3,}$/),
    "onceward-attempt": "1",
  });
  expect(headers).not.toHaveProperty("proxy-authorization");
  expect(headers).not.toHaveProperty("onceward_attempt");
  const other = await post({ headers: { authorization: "Bearer other" } });
  expect(other.headers).not.toHaveProperty("idempotency-replayed");
  expect(effect).toHaveBeenCalledTimes(2);
  expect(JSON.stringify(await records())).not.toContain("secret-token");
  const printed = await metrics();
  expect(printed).toContain('requests_total{ending="ran"} 2\n');
  expect(printed).toContain('requests_total{ending="answered"} 2\n');
});

test("the routes of the README guard the request that it sends with curl", async () => {
  const readme = await readFile(README, "utf8");
  const block = (language: string, start: string) =>
    [...readme.matchAll(/^ {3}```(\w+)\n([\s\S]*?)^ {3}```$/gm)]
      .filter(([, of, code = ""]) => of === language && code.trim().startsWith(start))
      .map(([, , code = ""]) => code.replaceAll(/^ {3}/gm, ""))[0] ?? "";
  const effect = vi.fn(charge);
  const { proxy } = await startWorld(world, effect, { routes: block("yaml", "routes:") });
  const curl = block("sh", "curl ").replace("127.0.0.1:8090", `127.0.0.1:${proxy.port}`);
  const post = async () => (await promisify(execFile)("sh", ["-c", curl])).stdout;
  const first = await post();
  expect(first).toMatch(/^HTTP\/1.1 201 .*\{"charge":1\}$/s);
  expect(first).not.toContain("idempotency-replayed");
  expect(await post()).toMatch(/^HTTP\/1.1 201 .*idempotency-replayed: true.*\{"charge":1\}$/is);
  expect(effect).toHaveBeenCalledOnce();
});

test("a refusal of Onceward has its request id in the response and in both logs", async () => {
  const REQUEST_ID = "onceward-request-id";
  const { charge: post } = await startWorld(world, charge);
  expect((await post()).headers).not.toHaveProperty(REQUEST_ID);
  const reused = await post({ body: "{}" });
  expect([reused.status, reused.headers[REQUEST_ID]]).toEqual([422, expect.any(String)]);

  const apiKey = formatApiKey(generateApiKey());
  const { charge: postUnknown, warnings } = await startWorld(world, charge, { apiKey });
  const failed = await postUnknown();
  expect([failed.status, failed.headers[REQUEST_ID]]).toEqual([500, expect.any(String)]);
  expect(warnings).toEqual([
    `POST request failed: CREDENTIAL_INVALID, request ${failed.headers[REQUEST_ID]} of Onceward`,
  ]);
  // At the level info, the log has refused operations, and no call that was refused for its credential.
  const logged = world.server.log.map(({ requestId }) => requestId);
  expect(logged).toContain(reused.headers[REQUEST_ID]);
});

test.each(["//charges/1", "/CHARGES/1/", "/x/../charges/1", "/%63harges/1"])(
  "%s, which the upstream service may take for the guarded path, is guarded",
  async (path) => {
    const effect = vi.fn(charge);
    const { proxy } = await startWorld(world, effect);
    expect((await send(proxy.port, { path, headers: { authorization: "a" } })).status).toBe(400);
    expect(effect).not.toHaveBeenCalled();
  },
);

test("another profile, and a body whose volatile members are ignored", async () => {
  const effect = vi.fn(charge);
  const { charge: post } = await startWorld(world, effect);
  const sent = (sentAt: number, amount: number) =>
    post({ path: "/acp", body: JSON.stringify({ amount, sentAt }) });
  expect((await sent(1, 100)).headers["idempotency-key"]).toBe('"order-1"');
  expect((await sent(2, 100)).headers["idempotent-replayed"]).toBe("true");
  expect((await sent(2, 200)).status).toBe(422);
  expect(effect).toHaveBeenCalledOnce();
});

test.each<[string, RequestListener, string]>([
  ["before a response", (req) => req.resume().on("end", () => req.socket.destroy()), "/charges/1"],
  ["on the service's side alone", (req) => req.resume().on("end", () => req.socket.end()), "/charges/1"],
  [
    "within a response",
    (_, res) => void res.writeHead(201, { "content-length": "9" }).write("one", () => res.destroy()),
    "/charges/1",
  ],
  ["by the route's time-out", () => {}, "/slow"],
  [
    "with an invalid response",
    (_, res) => void res.socket?.end("HTTP/1.1 999 No\r\ncontent-length: 0\r\n\r\n"),
    "/charges/1",
  ],
])(
  "a connection that ends %s leaves the outcome unknown: it is never released",
  async (_, listener, path) => {
    const effect = vi.fn(listener);
    const { charge: post, expireLeases, metrics } = await startWorld(world, effect);
    expect(problemOf(await post({ path }))).toMatchObject({
      status: 409,
      type: "urn:onceward:problem:ambiguous",
    });
    // Its lease lasts, but no one works on it.
    expect(problemOf(await post({ path }))).toMatchObject({
      status: 409,
      type: "urn:onceward:problem:ambiguous",
    });
    expect(problemOf(await post({ path, body: "{}" }))).toMatchObject({ status: 422 });
    await expireLeases();
    expect(problemOf(await post({ path }))).toMatchObject({
      status: 409,
      type: "urn:onceward:problem:ambiguous",
    });
    expect(effect).toHaveBeenCalledOnce();
    expect(await metrics()).toContain('requests_total{ending="unknown"} 1\n');
  },
);

test("a proxy at its maximum of requests, bytes or connections refuses more unsent", async () => {
  const held = vi.fn<RequestListener>(() => {});
  // One caller may hold a half of what the others leave.
  const maxLoad = { ...LOAD, connections: 4, requests: 3, heldBytes: 2 * (MIB + 50) };
  const { charge: post, proxy, metrics } = await startWorld(world, held, { maxLoad });
  const large = { headers: { "idempotency-key": '"large"' }, body: `"${"x".repeat(60)}"` };
  expect(await post(large)).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  // One that was refused holds nothing.
  const small = () => post({ headers: { "idempotency-key": '"small"' }, body: "{}" }).catch(() => {});
  void small();
  await expect.poll(() => held.mock.calls.length).toBe(1);
  // There is room for one response.
  expect(await post({ headers: { "idempotency-key": '"another"' }, body: "{}" })).toMatchObject({
    status: 503,
  });

  const free = { method: "GET", path: "/free" };
  const waiting = [send(proxy.port, free), send(proxy.port, free)].map((sent) => sent.catch(() => {}));
  await expect.poll(() => held.mock.calls.length).toBe(3);
  expect(await send(proxy.port, free)).toMatchObject({ status: 503 });
  expect(await metrics()).toContain('requests_total{ending="refused"} 3\n');

  const others = Array.from({ length: 3 }, () => connect(proxy.port, "127.0.0.1").on("error", () => {}));
  await Promise.any(others.map((other) => once(other.resume(), "close")));
  for (const other of others) other.destroy();
  held.mock.calls.forEach(([, response]) => {
    response.end();
  });
  await Promise.all(waiting);
});

/** Begins a guarded request without the end of its body. Resolves with its first byte at the proxy, and then with its answer. */
async function beginSlow(port: number, caller: string, bytes: number) {
  const headers = { authorization: caller, "idempotency-key": caller, "transfer-encoding": "chunked" };
  const slow = request({ port, method: "POST", path: "/charges/1", headers, agent: false });
  slow.on("error", () => {});
  onTestFinished(() => void slow.destroy());
  await new Promise((resolve) => slow.write("x".repeat(bytes), resolve));
  return { slow, status: once(slow, "response").then(([response]) => response.resume().statusCode) };
}

test("slow bodies hold only what has arrived, and one that takes too long is refused", async () => {
  const effect = vi.fn(charge);
  const maxLoad = { ...LOAD, heldBytes: 4 * (MIB + 100), bodyMs: 300 };
  const { charge: post, proxy } = await startWorld(world, effect, { maxLoad });
  const slow = await Promise.all(["a", "b", "c", "d"].map((caller) => beginSlow(proxy.port, caller, 10)));
  expect((await post()).status).toBe(201);
  expect(await Promise.all(slow.map(({ status }) => status))).toEqual([408, 408, 408, 408]);
  expect(effect).toHaveBeenCalledOnce();
});

test("a caller that holds much leaves room for another one", async () => {
  const held = vi.fn<RequestListener>((req, res) => {
    if (req.headers.authorization === "other") charge(req, res);
  });
  const { charge: post } = await startWorld(world, held, { maxLoad: { ...LOAD, heldBytes: 5 * MIB } });
  const as = (authorization: string, key: string) =>
    post({ headers: { authorization, "idempotency-key": key }, body: "{}" });
  const running = ["1", "2"].map((key) => as("greedy", key).catch(() => {}));
  await expect.poll(() => held.mock.calls.length).toBe(2);
  expect((await as("greedy", "3")).status).toBe(503);
  expect((await as("other", "1")).status).toBe(201);
  for (const [, response] of held.mock.calls) if (!response.writableEnded) response.end();
  await Promise.all(running);
  expect((await as("other", "2")).status).toBe(201);
});

test("upgrades count as requests, and one that carries nothing for a time is closed", async () => {
  const { proxy, metrics } = await startWorld(world, charge, {
    maxLoad: { ...LOAD, requests: 1, idleMs: 1000 },
    prepare: (upstream) =>
      upstream.on("upgrade", (_, socket) => {
        socket
          .on("error", () => {})
          .on("end", () => socket.end())
          .resume();
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
      }),
  });
  const upgrade = () => {
    const socket = connect(proxy.port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.write("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    return socket;
  };
  const first = upgrade();
  await once(first, "readable");
  expect(await text(upgrade())).toMatch(/^HTTP\/1\.1 503 /);
  expect(await text(first)).toMatch(/^HTTP\/1\.1 101 /);
  expect(await metrics()).toContain("in_flight 0\n");
});

test("a route names the header of its keys, and its operation for several hosts and methods", async () => {
  const effect = vi.fn(charge);
  const route = "namespace: charges, caller: { constant: all }, keyHeader: X-Request-Key, operation: charge";
  const { charge: post } = await startWorld(world, effect, {
    routes: `routes: [{ path: "/charges/:id", methods: [POST, PUT], ${route} }]`,
  });
  const as = async (key: string, host: string, more: { path?: string; method?: string } = {}) => {
    const { status, headers } = await post({ ...more, headers: { "x-request-key": key, host } });
    return [status, headers["idempotency-replayed"]];
  };
  expect(await as("one", "a.example")).toEqual([201, undefined]);
  expect(await as("one", "b.example")).toEqual([201, "true"]);
  expect(await as("one", "a.example", { path: "/charges/2" })).toEqual([422, undefined]);
  expect(await as("two", "a.example")).toEqual([201, undefined]);
  expect((await post()).body.toString()).toContain("X-Request-Key");
  expect(effect).toHaveBeenCalledTimes(2);
});

/** Sends requests on one connection without waiting for answers. */
function pipeline(port: number, requests: number): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(requests));
  return socket;
}

test("a connection with over 16 waiting requests is cut, also of the management port", async () => {
  const held = vi.fn<RequestListener>(() => {});
  const { proxy } = await startWorld(world, held);
  for (const port of [proxy.port, proxy.managementPort]) await once(pipeline(port, 18).resume(), "close");
  expect(held.mock.calls.length).toBeLessThan(2);
});

test("17 requests that a client sends without waiting are answered", async () => {
  const { proxy } = await startWorld(world, (_, response) => response.end("one,"));
  let answers = "";
  for await (const chunk of pipeline(proxy.port, 17)) {
    answers += chunk;
    if (answers.split("one,").length > 17) return;
  }
  expect(answers).toBe("17 answers");
});

test("a client that reads nothing is disconnected; one whose response waits is not", async () => {
  const waits = Promise.withResolvers<ServerResponse>();
  const unread = Promise.withResolvers<void>();
  const large: RequestListener = ({ url }, response) => {
    if (url === "/waits") return waits.resolve(response);
    response.end(Buffer.alloc(64 * MIB));
    unread.resolve();
  };
  const maxLoad = { ...LOAD, unreadMs: 50 };
  const { proxy, metrics } = await startWorld(world, large, { maxLoad });
  const waiting = send(proxy.port, { method: "GET", path: "/waits" });
  const response = await waits.promise;
  const socket = connect(proxy.port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write("GET /free HTTP/1.1\r\nhost: a\r\n\r\n");
  await unread.promise;
  await expect.poll(metrics, { timeout: 30_000 }).toContain("in_flight 1\n");
  response.end("after all");
  expect((await waiting).body.toString()).toBe("after all");
});

test("a claim is marked before the request is sent; one that can't be, or is lost, sends nothing", async () => {
  const order: string[] = [];
  const effect = vi.fn<RequestListener>((req, res) => {
    order.push("effect");
    charge(req, res);
  });
  const { upstream } = await startWorld(world, effect);
  const { port } = upstream.address() as { port: number };
  const claim = { deriveKey: () => "key", fencingToken: 1n, attempt: 1 };
  const { signal } = new AbortController();
  const incoming = Object.assign(new IncomingMessage(new Socket()), { method: "POST", url: "/charges/1" });
  const report = vi.fn();
  const given = { incoming, body: Buffer.from("{}"), timeoutMs: 1000, traceHeaders: undefined, report };
  const call = (begin: () => Promise<void>, ends = signal) =>
    callUpstream(new Upstream(new URL(`http://127.0.0.1:${port}`)), given, { ...claim, begin, signal: ends });
  const begin = async () => void order.push("begin");
  await call(begin);
  expect(order).toEqual(["begin", "effect"]);
  const refused = () => Promise.reject(new Error("superseded"));
  for (const calling of [call(begin, AbortSignal.abort()), call(refused)])
    await expect(calling).rejects.toThrow(NotSentError);
  upstream.close();
  upstream.closeAllConnections();
  await expect(call(begin)).rejects.toThrow(NotSentError);
  expect([order, report.mock.lastCall]).toEqual([["begin", "effect", "begin"], ["unreachable"]]);
});

test.each(["a certificate that is refused", "an answer before the request"])(
  "a service with %s got nothing, which releases the claim",
  async (fault) => {
    const certificate = await makeCertificate();
    const effect = vi.fn(charge);
    const early = createTcpServer((socket) => {
      socket.on("error", () => {}).write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    const isTls = fault.startsWith("a certificate");
    const service = isTls ? createTlsServer(certificate.pem, effect).on("tlsClientError", () => {}) : early;
    await once(service.listen(0, "127.0.0.1"), "listening");
    onTestFinished(async () => {
      service.close();
      await certificate.remove();
    });
    const { port } = service.address() as AddressInfo;
    const upstream = new Upstream(new URL(`${isTls ? "https" : "http"}://127.0.0.1:${port}`));
    const incoming = Object.assign(new IncomingMessage(new Socket()), { method: "POST", url: "/" });
    const given = {
      incoming,
      body: Buffer.from("{}"),
      timeoutMs: 5000,
      traceHeaders: undefined,
      report: vi.fn(),
    };
    const { signal } = new AbortController();
    // The answer comes while the mark is under way.
    const begin = vi.fn(() => new Promise<void>(() => {}));
    const claim = { deriveKey: () => "key", fencingToken: 1n, attempt: 1, signal, begin };
    await expect(callUpstream(upstream, given, claim)).rejects.toThrow(NotSentError);
    expect([begin.mock.calls.length, effect.mock.calls.length]).toEqual([isTls ? 0 : 1, 0]);
  },
);

test("a refused connection releases the claim: nothing was sent, and the next attempt runs", async () => {
  const effect = vi.fn(charge);
  const { charge: post, upstream, warnings } = await startWorld(world, effect);
  const { port } = upstream.address() as { port: number };
  upstream.close();
  upstream.closeAllConnections();
  expect((await post()).status).toBe(502);
  expect((await send(port, {}).catch((error) => error.code)) as unknown).toBe("ECONNREFUSED");
  upstream.listen(port, "127.0.0.1");
  await once(upstream, "listening");
  expect((await post()).status).toBe(201);
  expect(effect).toHaveBeenCalledOnce();
  expect(warnings).toEqual(["POST request unreachable: NotSentError"]);
});

test("a 5xx of the upstream service reaches the client, and the next attempt runs", async () => {
  const effect = vi.fn(charge).mockImplementationOnce((req, res) => {
    req.resume();
    res.writeHead(503, { "retry-after": "1" }).end("later");
  });
  const { charge: post } = await startWorld(world, effect);
  expect(await post()).toMatchObject({ status: 503, body: Buffer.from("later") });
  expect((await post()).status).toBe(201);
  expect(effect.mock.calls[1]?.[0].headers["onceward-attempt"]).toBe("2");
});

test("under onError unknown, a 5xx reaches its client, and its outcome is unknown for the others", async () => {
  const effect = vi.fn<RequestListener>((_, res) => void res.writeHead(500).end("broken"));
  const route = "{ path: /charges, namespace: charges, caller: { constant: all }, onError: unknown }";
  const { charge: post, expireLeases } = await startWorld(world, effect, { routes: `routes: [${route}]` });
  const path = "/charges";
  expect(await post({ path })).toMatchObject({ status: 500, body: Buffer.from("broken") });
  for (let repeats = 0; repeats < 2; repeats++) {
    expect(problemOf(await post({ path }))).toMatchObject({ type: "urn:onceward:problem:ambiguous" });
    await expireLeases();
  }
  expect(effect).toHaveBeenCalledOnce();
});

test("a response too large to store is streamed once, and its duplicate gets 410", async () => {
  const part = Buffer.alloc(700 * 1024, "x");
  const effect = vi.fn<RequestListener>((_, res) => {
    res.writeHead(201, "Made", ["X-Case", "kept", "content-length", "2150400"]);
    for (let parts = 0; parts < 3; parts++) res.write(part);
    res.end();
  });
  const { charge: post, proxy } = await startWorld(world, effect);
  const headers = { authorization: "a", "idempotency-key": "large", "content-type": "application/json" };
  const target = { host: "127.0.0.1", port: proxy.port, path: "/charges/1" };
  const outgoing = request({ ...target, method: "POST", headers }).end("{}");
  const [response] = await once(outgoing, "response");
  expect([response.statusMessage, response.rawHeaders.includes("X-Case")]).toEqual(["Made", true]);
  expect(await text(response)).toHaveLength(3 * part.byteLength);
  expect((await post({ headers, body: "{}" })).status).toBe(410);
  expect(effect).toHaveBeenCalledOnce();
});

test("a response that breaks off after its first MiB was sent is cut short for its client, too", async () => {
  const { charge: post, metrics } = await startWorld(
    world,
    (_, res) => void res.writeHead(201).write(Buffer.alloc(2 * 1024 * 1024), () => res.destroy()),
  );
  await expect(post()).rejects.toThrow("aborted");
  expect(await metrics()).toContain('requests_total{ending="unknown"} 1\n');
});

test("a response without a body is passed on and replayed without one", async () => {
  const { charge: post } = await startWorld(world, (req, res) =>
    req.resume().on("end", () => void res.writeHead(204).end()),
  );
  for (const replayed of [undefined, "true"]) {
    const { status, headers, body } = await post();
    expect([status, body.byteLength, headers["content-length"], headers["idempotency-replayed"]]).toEqual([
      ...[204, 0, undefined, replayed],
    ]);
  }
});

test("a request without its caller, or too large, is refused before it costs anything", async () => {
  const effect = vi.fn(charge);
  const { proxy, charge: post, records } = await startWorld(world, effect);
  expect((await send(proxy.port, { headers: { "idempotency-key": '"a"' } })).status).toBe(400);
  expect((await post({ body: "x".repeat(101) })).status).toBe(413);
  const chunked = request({
    port: proxy.port,
    method: "POST",
    path: "/charges/1",
    headers: { authorization: "a" },
  });
  chunked.write("x".repeat(60));
  chunked.write("x".repeat(60));
  const [response] = await once(chunked, "response");
  expect(response.statusCode).toBe(413);
  chunked.destroy();
  expect(effect).not.toHaveBeenCalled();
  expect(await records()).toEqual([]);
});

test("another request passes as a stream, both ways, with its trailers", async () => {
  const { proxy } = await startWorld(world, (req, res) => {
    res.writeHead(200, "Fine", ["X-Case", "kept", "Trailer", "X-Sum", "Keep-Alive", "timeout=9"]);
    req.on("data", (chunk) => res.write(chunk));
    req.on("end", () => {
      res.addTrailers({ "X-Sum": `${req.trailers["x-sum"]}+1` });
      res.end();
    });
  });
  const headers = { Trailer: "X-Sum", "transfer-encoding": "chunked" };
  const outgoing = request({ port: proxy.port, method: "PUT", path: "/other?a=%20b", headers });
  outgoing.write("one ");
  const [response] = await once(outgoing, "response");
  // The first part comes back while the request is still being sent.
  expect(String(await once(response, "data"))).toBe("one ");
  outgoing.write("two");
  outgoing.addTrailers({ "X-Sum": "1" });
  outgoing.end();
  expect(await text(response)).toBe("two");
  expect([response.statusMessage, response.rawHeaders.includes("X-Case"), response.trailers]).toEqual([
    "Fine",
    true,
    { "x-sum": "1+1" },
  ]);
  expect(response.headers["keep-alive"]).not.toBe("timeout=9");
});

test("an upgrade passes, and the bytes of both sides after it", async () => {
  const { proxy } = await startWorld(world, charge, {
    prepare: (upstream) =>
      upstream.on("upgrade", (_, socket, head) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
        socket.write(head);
        socket.pipe(socket);
      }),
  });
  const socket = connect(proxy.port, "127.0.0.1");
  socket.write("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly ");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  await vi.waitUntil(() => received.includes("early "), 10_000);
  socket.end("late");
  await once(socket, "close");
  expect(received).toMatch(/^HTTP\/1\.1 101 [\s\S]*Upgrade: echo[\s\S]*early late$/);
});

test("a drain makes the proxy unready, and ends once the requests that run are answered", async () => {
  const arrived = Promise.withResolvers<() => void>();
  const { proxy, charge: post } = await startWorld(world, (req, res) =>
    arrived.resolve(() => charge(req, res)),
  );
  const probe = (path: string) =>
    send(proxy.managementPort, { method: "GET", path }).then(({ status }) => status);
  expect([await probe("/readyz"), await probe("/healthz"), await probe("/")]).toEqual([200, 200, 404]);
  const running = post();
  const answer = await arrived.promise;
  const closed = proxy.close(60_000);
  expect(await probe("/readyz")).toBe(503);
  answer();
  expect((await running).status).toBe(201);
  await closed;
});

test("a drain waits for a call whose client has left, and its duplicate gets the response", async () => {
  const arrived = Promise.withResolvers<() => void>();
  const effect = vi.fn<RequestListener>((req, res) => arrived.resolve(() => charge(req, res)));
  const first = await startWorld(world, effect);
  const leaving = new AbortController();
  const left = first.charge({ signal: leaving.signal });
  const answer = await arrived.promise;
  leaving.abort();
  await expect(left).rejects.toThrow("aborted");
  const closed = first.proxy.close(60_000);
  answer();
  await closed;
  const [record] = await world.database.query<{ completed: boolean }>(
    "select settled_at is not null as completed from records where tenant_id = $1",
    [first.tenant.id],
  );
  expect(record).toEqual({ completed: true });
});

test("the command refuses wrong configuration and addresses before it listens, with code 2", async () => {
  const dir = await newDir();
  const [right, wrong] = [join(dir, "routes.yaml"), join(dir, "wrong.yaml")];
  await writeFile(right, ROUTES);
  await writeFile(wrong, ROUTES.replace("maxBodyBytes: 100", "maxBodyBytes: -1"));
  const cli = cliWith({ ONCEWARD_ADDRESS: "http://127.0.0.1:1", ONCEWARD_API_KEY: "ow_a_b" });
  const run = (upstream: string, config: string, ...more: string[]) =>
    cli("http-proxy", "--upstream", upstream, "--config", config, ...more);
  const upstream = "http://127.0.0.1:3000";
  expect(await run(upstream, wrong)).toMatchObject({
    exit: 2,
    stderr: expect.stringMatching(/wrong\.yaml:5: routes\[0\]\.maxBodyBytes: /),
  });
  expect(await run(upstream, join(dir, "none"))).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("can't be read"),
  });
  expect(await run(`${upstream}/path`, right)).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("without a path"),
  });
  expect(await run("ftp://a", right)).toMatchObject({ exit: 2 });
  expect(await run(upstream, right, "--listen", "8080")).toMatchObject({ exit: 2 });
});

test("--check says whether Onceward, service and issuer can be reached, without a proxy", async () => {
  const { upstream, environment, records } = await startWorld(world, charge);
  const { port } = upstream.address() as { port: number };
  const dir = await newDir();
  const config = join(dir, "routes.yaml");
  const check = async (env: Record<string, string>) => {
    const url = `http://127.0.0.1:${port}`;
    const { exit, stdout } = await cliWith(env)(
      ...["http-proxy", "--upstream", url, "--config", config, "--check", "--json"],
    );
    const { checks } = JSON.parse(stdout) as { checks: { check: string; result: string }[] };
    return { exit, ...Object.fromEntries(checks.map(({ check: name, result }) => [name, result])) };
  };
  await writeFile(config, ROUTES);
  expect(await check(environment)).toMatchObject({ exit: 0, upstream: "ok", namespaces: "ok", clock: "ok" });

  const jwt = JSON.stringify({ jwksUrl: `http://127.0.0.1:${port}/keys`, issuer: "https://issuer.example" });
  await writeFile(config, `routes: [{ path: /a, namespace: charges, caller: { jwt: ${jwt} } }]`);
  upstream.close();
  upstream.closeAllConnections();
  const issuer = `keys of 127.0.0.1:${port}`;
  expect(await check(environment)).toMatchObject({ exit: 6, upstream: "error", [issuer]: "error" });
  expect(await check({ ...environment, ONCEWARD_ADDRESS: `http://127.0.0.1:${port}` })).toMatchObject({
    exit: 3,
    connection: "error",
  });
  expect(await records()).toEqual([]);
});
