import { gzipSync } from "node:zlib";
import type { Random } from "../../support/random.ts";
import { anyBytes, FLOOD_FRAMES, type Mutation, pick } from "./mutation.ts";

/** Inserts lines after the request line, among the headers. */
function withLines(name: string, make: (random: Random) => readonly (string | Buffer)[]): Mutation {
  return {
    name,
    mutate: ([first = Buffer.alloc(0), ...rest], random) => [
      first,
      ...make(random).map((line) => Buffer.concat([Buffer.from(line), Buffer.from("\r\n")])),
      ...rest,
    ],
  };
}

function withFirstLine(name: string, lines: readonly string[]): Mutation {
  return {
    name,
    mutate: ([, ...rest], random) => [Buffer.from(`${pick(random, lines)}\r\n`), ...rest],
  };
}

const PATH = "/onceward.v1.IdempotencyService/Lookup";

const HEADERS = [
  "host: [",
  "host: a:99999",
  "host:",
  "host: a b",
  "content-length: -1",
  "content-length: 99999999999999999999",
  "content-length: 4194305",
  "content-length: 1, 2",
  "transfer-encoding: chunked",
  "transfer-encoding: gzip, chunked",
  "transfer-encoding: identity",
  "content-encoding: gzip",
  "content-encoding: br",
  "content-encoding: nonsense",
  "connect-content-encoding: gzip",
  "grpc-encoding: gzip",
  "content-type: application/connect+json",
  "content-type: application/grpc",
  "content-type: application/grpc-web-text",
  "content-type: text/html; charset=utf-7",
  "connect-protocol-version: 99",
  "connect-timeout-ms: 99999999999",
  "connect-timeout-ms: -1",
  "grpc-timeout: 99999999H",
  "expect: 100-continue",
  "expect: nonsense",
  "upgrade: h2c",
  "connection: upgrade, http2-settings",
  "connection: close",
  "authorization: Basic !!!",
  "x-request-id: \u001b[2J",
  "trailer: content-length",
  " folded: line",
  "no colon",
  ": no name",
  "n\u0000ul: v",
];

/** Mutations of HTTP/1.1. */
export const http1Mutations: readonly Mutation[] = [
  withLines("hostile headers", (random) => [pick(random, HEADERS), pick(random, HEADERS)]),
  withLines("a hostile header", (random) => [pick(random, HEADERS)]),
  withLines("a header over every limit", (random) => [`x-huge: ${"v".repeat(random.below(100_000))}`]),
  withLines("headers over and over", (random) =>
    Array.from({ length: random.below(FLOOD_FRAMES) }, (_, i) => `x-${i}: ${"v".repeat(random.below(100))}`),
  ),
  withLines("headers of any bytes", (random) => [anyBytes(random, random.below(100))]),
  withLines("a body in invalid chunks", (random) => [
    "transfer-encoding: chunked",
    "",
    pick(random, ["ffffffffffffffff", "-1", "5", "zz", "0", "1;ext=".padEnd(5000, "x")]),
    anyBytes(random, random.below(100)),
  ]),
  withLines("a body that swells", (random) => [
    pick(random, ["content-encoding: gzip", "content-encoding: br"]),
    "content-length: 5000",
    "",
    gzipSync(Buffer.alloc(random.below(5_000_000))),
  ]),
  withFirstLine("a hostile target", [
    "POST http://[ HTTP/1.1",
    "POST //[ HTTP/1.1",
    "POST * HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "POST /%ff%zz HTTP/1.1",
    `POST ${PATH}?${"x".repeat(10_000)} HTTP/1.1`,
    `POST ${PATH}/../Claim HTTP/1.1`,
    "POST /onceward.v1.IdempotencyService/__proto__ HTTP/1.1",
    "CONNECT a:1 HTTP/1.1",
  ]),
  withFirstLine("a hostile method or version", [
    `GET ${PATH} HTTP/1.1`,
    `GET ${PATH}?connect=v1&encoding=json&message=%7B%22namespace%22:1%7D HTTP/1.1`,
    `GET ${PATH}?connect=v1&encoding=proto&base64=1&compression=gzip&message=!! HTTP/1.1`,
    `HEAD ${PATH} HTTP/1.1`,
    `PUT ${PATH} HTTP/1.1`,
    `BREW ${PATH} HTTP/1.1`,
    `POST ${PATH} HTTP/1.0`,
    `POST ${PATH} HTTP/0.9`,
    `POST ${PATH} HTTP/99.9`,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n",
  ]),
  {
    name: "a request over and over",
    mutate: (frames, random) => new Array<readonly Buffer[]>(1 + random.below(20)).fill(frames).flat(),
  },
  {
    name: "lines ended by less",
    mutate: (frames) =>
      frames.map((line) => Buffer.from(line.toString("latin1").replace("\r\n", "\n"), "latin1")),
  },
];
