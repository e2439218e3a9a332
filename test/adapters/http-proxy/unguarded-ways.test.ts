import { once } from "node:events";
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { createOnceward } from "@onceward/client";
import { parseConfig } from "@onceward/http-proxy";
import { expect, onTestFinished, test } from "vitest";
import { HttpProxy } from "../../../clients/http-proxy/src/proxy.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { send } from "../http/http-client.ts";
import { startWorld } from "./proxied-world.ts";

const world = useServer();
const ROUTES = `routes:
  - { path: "/charges", namespace: charges, caller: { apiKey: authorization } }
  - { path: "/charges/:id", namespace: charges, caller: { apiKey: authorization } }
  - { path: "/files/*", namespace: charges, caller: { constant: all } }
  - { path: "/reports.:format", namespace: charges, caller: { constant: all } }
  - { path: "/caf%C3%A9", namespace: charges, caller: { constant: all } }
`;
const REFUSED = "400";
const HEAD = "Authorization: b\r\n";
const EMPTY = "Content-Length: 0\r\n";

/**
 * Starts a proxy before a service that takes every request, and returns a function that sends bytes to the proxy, ends its side and
 * returns the status of each response, and each request that the service got.
 */
async function startRecorder(options: { readonly trustForwardedProto?: boolean } = {}) {
  const seen: string[] = [];
  const record: RequestListener = (req, res) => {
    const isGuarded = "onceward-derived-key" in req.headers;
    seen.push(`${isGuarded ? "guarded" : "passed"} ${req.method} ${req.url}`);
    req.resume().on("end", () => res.end("ok"));
  };
  const { proxy } = await startWorld(world, record, {
    ...options,
    routes: ROUTES,
    prepare: (upstream) =>
      upstream.on("upgrade", ({ method, url, headers }, socket) => {
        seen.push(`upgraded ${method} ${url} to ${headers.upgrade}`);
        socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
      }),
  });
  let keys = 0;
  return async (
    requestLine: string,
    headers = EMPTY,
    body = "",
    idempotencyKey = `key-${keys++}`,
    host = "a",
  ) => {
    seen.length = 0;
    const socket = connect(proxy.port, "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    const key = `Idempotency-Key: "${idempotencyKey}"\r\nHost: ${host}\r\n`;
    const close = /^connection:/im.test(headers) ? "" : "Connection: close\r\n";
    socket.write(
      Buffer.from(`${requestLine} HTTP/1.1\r\n${HEAD}${key}${close}${headers}\r\n${body}`, "latin1"),
    );
    const received = await text(socket);
    const statuses = received.match(/^HTTP\/1\.1 \d+/gm)?.map((line) => line.slice(9)) ?? [];
    return { result: [...statuses, ...seen].join(", "), received };
  };
}

/** Sends each request by its line, and returns the results by the lines. */
async function resultsOf(rows: readonly (readonly [line: string, ...unknown[]])[]) {
  const sendRaw = await startRecorder();
  const results: Record<string, string> = {};
  for (const [line] of rows) results[line] = (await sendRaw(line)).result;
  return results;
}

test("a path that the service may read as a guarded one is guarded or refused, and never passes", async () => {
  const expected = [
    // Guarded: the spellings that the router itself reads as the path.
    ["POST /charges", "200, guarded POST /charges"],
    ["POST /CHARGES/", "200, guarded POST /CHARGES/"],
    ["POST //charges", "200, guarded POST //charges"],
    ["POST /./charges", "200, guarded POST /./charges"],
    ["POST /x/../charges", "200, guarded POST /x/../charges"],
    ["POST /x/%2e%2E/charges", "200, guarded POST /x/%2e%2E/charges"],
    ["POST /%63harges", "200, guarded POST /%63harges"],
    ["POST /x/..\\charges", "200, guarded POST /x/..\\charges"],
    ["POST /charges?a=%zz", "200, guarded POST /charges?a=%zz"],
    ["POST http://A/charges", "200, guarded POST http://A/charges"],
    ["POST /charges/1%2F2", "200, guarded POST /charges/1%2F2"],
    [`POST /charges/${"1".repeat(101)}`, `200, guarded POST /charges/${"1".repeat(101)}`],
    ["POST /files/", "200, guarded POST /files/"],
    ["POST /files", "200, guarded POST /files"],
    ["POST /files/a%20b", "200, guarded POST /files/a%20b"],
    ["POST /reports.json", "200, guarded POST /reports.json"],
    ["POST /reports", "200, passed POST /reports"],
    ["POST /caf%C3%A9", "200, guarded POST /caf%C3%A9"],
    // Refused: no reading at all.
    ["POST /charges/%zz", REFUSED],
    ["POST /%zz/../charges", REFUSED],
    ["POST /charges/%", REFUSED],
    ["POST /charges/%c0%af", REFUSED],
    ["POST /charges/%u0031", REFUSED],
    ["POST http:/charges", REFUSED],
    ["POST ftp://other.example/charges", REFUSED],
    ["POST charges", REFUSED],
    ["POST *", REFUSED],
    [`POST /${"a".repeat(4097)}`, "414"],
    // Refused: one reading is another operation, or another host's.
    ["POST http://other.example/charges", REFUSED],
    ["POST /charges/1;v=2", REFUSED],
    ["POST /charges/1.", REFUSED],
    ["POST /charges/1%252F2", REFUSED],
    ["POST /files/a%2Fb", REFUSED],
    ["POST /files/a/../b", REFUSED],
    // Refused: one reading is guarded, another is not.
    ["POST /%2563harges", REFUSED],
    ["POST /%252563harges", REFUSED],
    ["POST /charges%2F1", REFUSED],
    ["POST /charges%5c1", REFUSED],
    ["POST //other.example/charges", REFUSED],
    ["POST /\\other.example/charges", REFUSED],
    ["POST http://other.example\\charges", REFUSED],
    ["POST http://other.example//x/charges", REFUSED],
    ["POST /x//../charges", REFUSED],
    ["POST /x/..%2fcharges", REFUSED],
    ["POST /x/%252e%252e/charges", REFUSED],
    ["POST /x/..;/charges", REFUSED],
    ["POST /;a=b/charges", REFUSED],
    ["POST /charges;v=2", REFUSED],
    ["POST /charges%3Bv=2", REFUSED],
    ["POST /files/../other", REFUSED],
    ["POST /charges.", REFUSED],
    ["POST /charges%20", REFUSED],
    ["POST /%09charges", REFUSED],
    ["POST /cha%0Arges", REFUSED],
    ["POST /charges%00.txt", REFUSED],
    ["POST /charges%23x", REFUSED],
    ["POST /charges%3Fx", REFUSED],
    ["POST /x#/../charges", REFUSED],
    [`POST /${"%25".repeat(1)}${"25".repeat(40)}41`, REFUSED],
    ["POST /caf\u00c3\u00a9", REFUSED],
    ["POST /other?_method=PUT", "200, passed POST /other?_method=PUT"],
    ["GET /charges?_method=POST", REFUSED],
    ["POST /charges?_method=delete", REFUSED],
    ["GET /charges?_%6Dethod=POST", REFUSED],
    ["GET /charges?a=b;_method=POST", REFUSED],
    ["GET /charges?+.method=POST", REFUSED],
    // Refused by Node: no target has these, and no method is in lower case.
    ["POST /charges\tx", REFUSED],
    ["POST /charges x", REFUSED],
    ["post /charges", REFUSED],
    // Passed: no reading is guarded.
    ["GET /charges/%zz", "200, passed GET /charges/%zz"],
    ["HEAD /charges", "200, passed HEAD /charges"],
    ["OPTIONS *", "200, passed OPTIONS *"],
    ["POST /other/100%25", "200, passed POST /other/100%25"],
    ["POST /other/a%2Fb;c=d/%20e", "200, passed POST /other/a%2Fb;c=d/%20e"],
    ["POST /charges/../other", "200, passed POST /charges/../other"],
    ["PUT /charges", "200, passed PUT /charges"],
  ] as const;
  expect(await resultsOf(expected)).toEqual(Object.fromEntries(expected));
});

test.each([
  [
    [
      "/charges/Ab",
      "//charges/Ab/",
      "/CHARGES//Ab",
      "/%63harges/%41b",
      "/x/../charges/./Ab",
      "http://a/charges/Ab",
    ],
    1,
  ],
  [["/charges/1%2f2", "/charges/1%2F2"], 1],
  [["/charges/caf%c3%a9", "/charges/caf%C3%A9"], 1],
  [["/files/a/b", "/FILES//a/b/"], 1],
  [["/files", "/files/"], 1],
  [["/charges/ab", "/charges/aB"], 2],
])("%j with one key are %i operations", async (paths, operations) => {
  const sendRaw = await startRecorder();
  const effects: string[] = [];
  for (const path of paths) {
    const { result } = await sendRaw(`POST ${path}`, EMPTY, "", "one");
    const [status, ...seen] = result.split(", ");
    expect(status).toBe("200");
    effects.push(...seen);
  }
  expect(effects).toHaveLength(operations);
});

test("two hosts are two operations, regardless of case and default port", async () => {
  const sendRaw = await startRecorder();
  const from = async (host: string, more = "") =>
    (await sendRaw("POST /charges", `${EMPTY}${more}`, "", "one", host)).result;
  expect(await from("shop.example")).toBe("200, guarded POST /charges");
  expect(await from("SHOP.example:80")).toBe("200");
  expect(await from("bank.example")).toBe("200, guarded POST /charges");
  expect(await from("bank.example:8080")).toBe("200, guarded POST /charges");
  expect(await from("shop.example", "X-Forwarded-Host: bank.example\r\n")).toBe("200, guarded POST /charges");
});

test("two schemes are two operations only where X-Forwarded-Proto is trusted", async () => {
  const [trusting, other] = [await startRecorder({ trustForwardedProto: true }), await startRecorder()];
  const GUARDED = "200, guarded POST /charges";
  const rows: readonly (readonly [header: string, trusted: string, untrusted: string])[] = [
    ["", GUARDED, GUARDED],
    ["X-Forwarded-Proto: http\r\n", "200", "200"],
    ["X-Forwarded-Proto: HTTPS, https\r\n", GUARDED, "200"],
    ["X-Forwarded-Proto: https\r\n", "200", "200"],
    ["X-Forwarded-Proto: http\r\nX_Forwarded_Proto: https\r\n", REFUSED, "200"],
    ["X-Forwarded-Proto: ftp\r\n", REFUSED, "200"],
  ];
  for (const [header, ...results] of rows)
    for (const [index, sendRaw] of [trusting, other].entries())
      expect([header, (await sendRaw("POST /charges", EMPTY + header, "", "one")).result]).toEqual([
        header,
        results[index],
      ]);
});

test("a header that a client makes one of its connection still reaches the service", async () => {
  const { proxy, upstream } = await startWorld(world, (_, res) => res.end("ok"), { routes: ROUTES });
  const headers = {
    connection: "close, Authorization, idempotency-key, x-account",
    authorization: "b",
    "x-account": "c",
  };
  for (const path of ["/charges", "/other"]) {
    const [[request]] = await Promise.all([
      once(upstream, "request"),
      send(proxy.port, { path, headers: { ...headers, "idempotency-key": "one" } }),
    ]);
    expect(request.headers).toMatchObject({ authorization: "b", "idempotency-key": "one", "x-account": "c" });
  }
});

test("a refusal is a problem that names the target, up to a bound", async () => {
  const sendRaw = await startRecorder();
  const problemOf = async (path: string) => {
    const { received } = await sendRaw(`POST ${path}`);
    expect(received).toMatch(/^content-type: application\/problem\+json\r$/m);
    return JSON.parse(received.split("\r\n").find((part) => part.startsWith("{")) ?? "") as {
      title: string;
      detail: string;
    };
  };
  expect(await problemOf("/charges/%zz")).toEqual({
    ...{ type: "about:blank", status: 400 },
    title: "The path has an escape that is not one of UTF-8.",
    detail: "POST /charges/%zz",
  });
  const { detail } = await problemOf(`/charges;${"x".repeat(1000)}`);
  expect(detail).toMatch(/^POST \/charges;x{186}$/);
});

test.each<[header: string, line: string, result: string]>([
  ["X-HTTP-Method-Override: POST", "GET /charges", REFUSED],
  ["X-HTTP-Method: PATCH", "PUT /charges/1", REFUSED],
  ["X-Method-Override: DELETE", "POST /charges/1", REFUSED],
  ["X-HTTP-Method-Override: POST", "GET /other", "200, passed GET /other"],
  ["X-HTTP-Method-Override: post", "POST /charges", "200, guarded POST /charges"],
  ["X_HTTP.Method-Override: POST", "GET /charges", REFUSED],
  ["X-HTTP-Method-Override: GET, POST", "GET /charges", REFUSED],
  ["X-HTTP-Method-Override: GET\r\nX-HTTP-Method-Override: POST", "GET /charges", REFUSED],
  ["X-Original-URL: /charges", "POST /other", REFUSED],
  ["X_Original_URL: /charges", "POST /other", REFUSED],
  ["X-Original-URL: /other\r\nX-Original-URL: /charges", "POST /other", REFUSED],
  ["Authorization: another", "POST /charges", REFUSED],
  ["Idempotency_Key: another", "POST /charges", REFUSED],
  ["Host: another", "POST /charges", REFUSED],
  ["X-Rewrite-URL: http://other.example/%63harges?a=b", "POST /other", REFUSED],
  ["X-Original-URL: /api/charges/1", "POST /charges/1", "200, guarded POST /charges/1"],
])("%s with %s: %s", async (header, line, result) => {
  expect(await (await startRecorder())(line, `${EMPTY}${header}\r\n`)).toMatchObject({ result });
});

const CHUNKED = "Transfer-Encoding: chunked\r\n";
const UPGRADE = "Connection: Upgrade, close\r\nUpgrade: ";
/** A request within a body, which a service would take for a second request if it did not know the body's length. */
const SMUGGLED = "POST /charges HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
const lengthOf = (body: string) => `Content-Length: ${body.length}\r\n`;
const chunked = (body: string) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

test.each<[what: string, line: string, headers: string, body: string, result: string]>([
  [
    "an upgrade of a guarded request",
    "POST /charges",
    `${UPGRADE}echo\r\n${EMPTY}`,
    "",
    "200, guarded POST /charges",
  ],
  [
    "an upgrade with a body",
    "POST /other",
    `${UPGRADE}echo\r\n${lengthOf("abc")}`,
    "abc",
    "200, passed POST /other",
  ],
  ["an upgrade of an ambiguous request", "POST /charges%2F1", `${UPGRADE}echo\r\n${EMPTY}`, "", REFUSED],
  [
    "an upgrade to HTTP/2",
    "GET /other",
    `${UPGRADE}h2c\r\nHTTP2-Settings: AAMA\r\n`,
    "",
    "200, passed GET /other",
  ],
  [
    "an upgrade to TLS, or something",
    "GET /other",
    `${UPGRADE}echo, TLS/1.2\r\n`,
    "",
    "200, passed GET /other",
  ],
  ["another upgrade", "GET /other", `${UPGRADE}echo\r\n`, "", "101, upgraded GET /other to echo"],
  [
    "a length that belongs to the connection",
    "GET /other",
    `Connection: close, Content-Length\r\n${lengthOf(SMUGGLED)}`,
    SMUGGLED,
    "200, passed GET /other",
  ],
  [
    "chunks that belong to the connection",
    "DELETE /other",
    `Connection: close, transfer-encoding\r\n${CHUNKED}`,
    chunked(SMUGGLED),
    "200, passed DELETE /other",
  ],
  ["a length and chunks", "POST /other", `${CHUNKED}${lengthOf(SMUGGLED)}`, SMUGGLED, REFUSED],
  ["two lengths", "POST /other", `Content-Length: 0\r\n${lengthOf(SMUGGLED)}`, SMUGGLED, REFUSED],
  ["a length that is not a number", "POST /other", "Content-Length: +3\r\n", "abc", REFUSED],
  [
    "another encoding after chunks",
    "POST /other",
    "Transfer-Encoding: chunked, identity\r\n",
    "abc",
    REFUSED,
  ],
  ["an unknown encoding", "POST /other", "Transfer-Encoding: xchunked\r\n", "abc", REFUSED],
  [
    "a coding besides chunks of a guarded request",
    "POST /charges",
    CHUNKED.replace(":", ": gzip,"),
    chunked("abc"),
    "501",
  ],
  ["chunks of a guarded request", "POST /charges", CHUNKED, chunked("abc"), "200, guarded POST /charges"],
  [
    "an expectation",
    "POST /charges",
    `Expect: 100-continue\r\n${lengthOf("abc")}`,
    "abc",
    "100, 200, guarded POST /charges",
  ],
  [
    "an expectation that passes",
    "POST /other",
    `Expect: 100-continue\r\n${lengthOf("abc")}`,
    "abc",
    "100, 200, passed POST /other",
  ],
  ["another expectation", "POST /charges", `Expect: more\r\n${EMPTY}`, "", "417"],
])("%s: %s", async (_, line, headers, body, result) => {
  expect(await (await startRecorder())(line, headers, body)).toMatchObject({ result });
});

test("without Node's upgrade callback, a request that may not upgrade is refused", async () => {
  const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "ow_a_b" });
  onTestFinished(() => onceward.close());
  const proxy = new HttpProxy({
    ...{ onceward, upstream: new URL("http://127.0.0.1:1"), routes: parseConfig(ROUTES, "routes.yaml") },
    warn() {},
  });
  let written = "";
  const write = (chunk: Buffer, _: string, done: () => void) => {
    written += chunk;
    done();
  };
  const socket = new Duplex({ read() {}, write });
  const request = { method: "POST", url: "/charges", headers: { upgrade: "echo" }, rawHeaders: [] };
  proxy.server.emit("upgrade", request, socket, Buffer.alloc(0));
  await once(socket, "close");
  expect(written).toMatch(/^HTTP\/1\.1 400 /);
});
