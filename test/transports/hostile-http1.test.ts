import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { startTarget, useTarget } from "../support/attacks/hostility.ts";
import { untilStill } from "../support/attacks/until-still.ts";
import { pathOf } from "../support/network/raw-grpc.ts";
import { post } from "../support/network/raw-http.ts";
import { exchange, openSocket } from "../support/network/raw-socket.ts";

const CLAIM = pathOf("Claim");
const MIB = 1024 * 1024;

const target = useTarget();

afterEach(() => target.expectUnharmed());

/** Makes a round trip to the server. */
const isLive = () =>
  fetch(`http://127.0.0.1:${target.server.managementPort}/livez`).then((reply) => reply.text());

/** Returns a request with any head and an empty object as its body. */
function requestOf(line: string, ...headers: readonly string[]): string {
  return `${[line, ...headers, "connection: close", "content-type: application/json", "content-length: 2"].join("\r\n")}\r\n\r\n{}`;
}

describe("a head that is not a URL", () => {
  test.each([
    ["an unclosed bracket", requestOf(`POST ${CLAIM} HTTP/1.1`, "host: [")],
    ["a port out of range", requestOf(`POST ${CLAIM} HTTP/1.1`, "host: a:99999")],
    ["a space within", requestOf(`POST ${CLAIM} HTTP/1.1`, "host: a b")],
    ["an empty host", requestOf(`POST ${CLAIM} HTTP/1.1`, "host:")],
    ["no host", requestOf(`POST ${CLAIM} HTTP/1.1`)],
    ["no host in HTTP/1.0", requestOf(`POST ${CLAIM} HTTP/1.0`)],
    ["an absolute target that is not a URL", requestOf("POST http://[ HTTP/1.1", "host: a")],
  ])("%s is a bad request", async (_name, request) => {
    expect(await exchange(target.server.httpPort, request)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test.each([
    ["an absolute target elsewhere", requestOf(`POST http://elsewhere${CLAIM} HTTP/1.1`, "host: a")],
    ["an asterisk", requestOf("OPTIONS * HTTP/1.1", "host: a")],
    ["two slashes", requestOf("POST // HTTP/1.1", "host: a")],
    ["a path of nothing but dots", requestOf("POST /.. HTTP/1.1", "host: a")],
    ["a path that is not UTF-8", requestOf("POST /%ff%zz HTTP/1.1", "host: a")],
  ])("%s is not found", async (_name, request) => {
    expect(await exchange(target.server.httpPort, request)).toMatch(/^HTTP\/1\.1 40[04] /);
  });
});

test.each(["httpPort", "managementPort"] as const)("garbage on the %s ends that connection", async (port) => {
  const garbage = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 89 + 7) % 256));
  expect(await exchange(target.server[port], garbage)).toMatch(/^HTTP\/1\.1 400 /);
  expect(await exchange(target.server[port], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toMatch(
    /^(HTTP\/1\.1 400 |$)/,
  );
  const upgrade = requestOf("GET /livez HTTP/1.1", "host: a", "upgrade: h2c", "connection: upgrade");
  expect(await exchange(target.server[port], upgrade)).toMatch(/^HTTP\/1\.1 (200|404) |^$/);
  expect(await exchange(target.server[port], "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n")).toBe("");
});

test.each([
  ["httpPort", "16 KiB", ["v".repeat(17_000)]],
  ["managementPort", "16 KiB", ["v".repeat(17_000)]],
  ["httpPort", "128 headers", Array<string>(128).fill("v")],
  ["managementPort", "128 headers", Array<string>(128).fill("v")],
] as const)("the %s refuses headers over %s by 431, and names the limits", async (port, _limit, values) => {
  const many = values.map((value, at) => `x-${at}: ${value}`);
  const answer = await exchange(target.server[port], requestOf("GET /livez HTTP/1.1", "host: a", ...many));
  expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  expect(answer).toContain("at most 16384 bytes and 128 headers");
});

test("trailers over 16 KiB end the connection", async () => {
  const head = requestOf(`POST ${CLAIM} HTTP/1.1`, "host: a", "transfer-encoding: chunked");
  const { send, closed, received } = await openSocket(target.server.httpPort);
  await send(head.replace(/content-length: 2\r\n\r\n\{\}/, "\r\n0\r\n").replace("\r\n\r\n\r\n", "\r\n\r\n"));
  for (let n = 0; n < 20; n++) await send(`x-${n}: ${"v".repeat(1000)}\r\n`);
  await closed;
  expect(received()).toMatch(/^HTTP\/1\.1 (401|431) |^$/);
});

test("a request that stops or trickles is cut off in time", async () => {
  const anonymous = [`POST ${CLAIM} HTTP/1.1`, "host: a", "content-type: application/json"].join("\r\n");
  const caller = `${anonymous}\r\nauthorization: Bearer ${target.tenant.apiKey}\r\ncontent-length: 100`;
  /** Sends the start of a request, and resolves with what is received until the connection ends. */
  async function cutOff(start: string, trickle?: string): Promise<string> {
    const { send, closed, received, socket } = await openSocket(target.server.httpPort);
    await send(start);
    const timer = setInterval(() => trickle !== undefined && socket.write(trickle), 50);
    await closed;
    clearInterval(timer);
    return received();
  }
  // At once, because each waits for the request timeout.
  const [headers, never, halfWay] = await Promise.all([
    cutOff(`POST ${CLAIM} HTTP/1.1\r\nhost: a\r\n`),
    cutOff(`${caller}\r\n\r\n`),
    cutOff(`${caller}\r\n\r\n{"namespace":`),
    cutOff(`${anonymous}\r\ncontent-length: 100000\r\n\r\n`, " "),
  ]);
  expect(headers).toMatch(/^HTTP\/1\.1 408 /);
  expect(never).toMatch(/^HTTP\/1\.1 408 |^$/);
  expect(halfWay).toMatch(/^HTTP\/1\.1 408 |^$/);
});

test("two hundred gzip bombs at once are refused within bounded memory", async () => {
  // A separate server with a longer request timeout: a busy machine takes more than a second to send all of
  // them.
  const patient = await startTarget(undefined, { ONCEWARD_REQUEST_TIMEOUT: "60s" });
  onTestFinished(() => patient.end());
  const bomb = gzipSync(Buffer.alloc(64 * MIB, " "));
  const sending = {
    contentType: "application/json",
    apiKey: undefined,
    more: { "content-encoding": "gzip" },
  };
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => post(patient.server.httpPort, "Claim", sending, bomb)),
  );
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["Unauthenticated"]));
  await patient.expectUnharmed();
});

test("a caller that pipelines requests and reads no answer costs bounded memory", async () => {
  const { socket, send } = await openSocket(target.server.httpPort);
  socket.pause();
  const request = `GET /nowhere-${"x".repeat(1000)} HTTP/1.1\r\nhost: a\r\n\r\n`;
  const flood = request.repeat(20_000);
  // The server reads no further while its answers are not read, so the rest is never sent.
  void send(flood);
  expect(await untilStill(() => socket.bytesWritten, isLive)).toBeGreaterThan(0);
  await target.expectUnharmed();
  socket.destroy();
});
