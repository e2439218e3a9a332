import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  PREFACE,
} from "../../support/network/http2-frames.ts";
import { frameOf, pathOf } from "../../support/network/raw-grpc.ts";
import type { Random } from "../../support/random.ts";
import { callHeaders } from "./corpus.ts";
import { anyBytes, FLOOD_FRAMES, type Mutation, pick, withOne } from "./mutation.ts";

const HEAD_BYTES = 9;
const PADDED = 0x8;
const WITH_PRIORITY = 0x20;

/** Inserts frames after the preface and the settings, among the conversation's own frames. */
function injected(name: string, make: (random: Random) => readonly Buffer[]): Mutation {
  return {
    name,
    mutate(frames, random) {
      const at = 2 + random.below(Math.max(1, frames.length - 2));
      return [...frames.slice(0, at), ...make(random), ...frames.slice(at)];
    },
  };
}

/** Inserts many frames, each made with its own number. */
function flood(name: string, make: (random: Random, number: number) => Buffer): Mutation {
  return injected(name, (random) =>
    Array.from({ length: 1 + random.below(FLOOD_FRAMES) }, (_, number) => make(random, number)),
  );
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

const EXTREMES = [0, 1, 0x3fff, 0x4000, 0xffff, 0xffffff, 0x1000000, 0x7fffffff, 0x80000000, 0xffffffff];

/** Stream ids that no conversation of the corpus uses. */
function newStream(number: number): number {
  return 101 + number * 2;
}

function headersFrame(
  streamId: number,
  headers: Readonly<Record<string, string>>,
  flags = END_HEADERS,
): Buffer {
  return frame(FRAME.headers, flags, streamId, headerBlock(headers));
}

const HEADERS = callHeaders(pathOf("Lookup"), "ow_nobody_nothing");

/** A value that no client would send. */
const HOSTILE_HEADERS: readonly Readonly<Record<string, string>>[] = [
  { ":authority": "[" },
  { ":authority": "a:99999" },
  { ":authority": "\u00ff\u0000" },
  { ":path": "/" },
  { ":path": "//[" },
  { ":path": "/%00%ff?[" },
  { ":path": "" },
  { ":path": "/onceward.v1.IdempotencyService/__proto__" },
  { ":method": "CONNECT" },
  { ":method": "GET" },
  { ":scheme": "" },
  { ":unknown": "x" },
  { "content-type": "application/grpc+json" },
  { "content-type": "text/html" },
  { "grpc-timeout": "99999999H" },
  { "grpc-timeout": "-1S" },
  { "grpc-encoding": "gzip" },
  { "grpc-encoding": "deflate, identity, \u00e9" },
  { "grpc-accept-encoding": "x".repeat(5000) },
  { "content-length": "18446744073709551616" },
  { "x-request-id": "\u001b[2J" },
  { "x-bin": "!!!" },
  { authorization: "Bearer" },
  { authorization: `Bearer ${"eyJ".repeat(3000)}.e30.x` },
  { authorization: "Bearer ow_aaaaaaaaaaaaaaaa_" },
  { "transfer-encoding": "chunked" },
  { "X-Upper": "x" },
  { "": "no name" },
  { cookie: "a=b; ".repeat(2000) },
  { "x-huge": "v".repeat(16_000) },
  { expect: "100-continue" },
];

/** Mutations of HTTP/2. */
export const http2Mutations: readonly Mutation[] = [
  {
    name: "a frame's length, type, flags or stream replaced",
    mutate: (frames, random) =>
      withOne(frames, random, (whole) => {
        if (whole.byteLength < HEAD_BYTES || whole === PREFACE) return whole;
        const copy = Buffer.from(whole);
        switch (random.below(4)) {
          case 0:
            copy.writeUIntBE(pick(random, EXTREMES) & 0xffffff, 0, 3);
            break;
          case 1:
            copy[3] = random.below(16);
            break;
          case 2:
            copy[4] = random.below(256);
            break;
          default:
            copy.writeUInt32BE(pick(random, EXTREMES), 5);
        }
        return copy;
      }),
  },
  injected("a call with a hostile header", (random) => [
    headersFrame(newStream(0), {
      ...HEADERS,
      ...pick(random, HOSTILE_HEADERS),
      ...pick(random, HOSTILE_HEADERS),
    }),
    frame(FRAME.data, END_STREAM, newStream(0), frameOf(new Uint8Array())),
  ]),
  injected("headers that are not HPACK", (random) => [
    frame(FRAME.headers, END_HEADERS, newStream(0), anyBytes(random, 1 + random.below(200))),
  ]),
  injected("dynamic table resized without end", (random) => [
    frame(FRAME.headers, END_HEADERS, newStream(0), Buffer.from(new Array(1 + random.below(500)).fill(0x3f))),
  ]),
  injected("a header list over every limit", (random) => {
    const more = headerBlock({ "x-more": "v".repeat(8000) });
    const chain = Array.from({ length: random.below(60) }, () =>
      frame(FRAME.continuation, 0, newStream(0), more),
    );
    return [
      headersFrame(newStream(0), HEADERS, 0),
      ...chain,
      frame(FRAME.continuation, END_HEADERS, newStream(0)),
    ];
  }),
  injected("a chain of empty continuations", (random) => [
    headersFrame(newStream(0), HEADERS, 0),
    ...Array.from({ length: random.below(FLOOD_FRAMES) }, () => frame(FRAME.continuation, 0, newStream(0))),
  ]),
  injected("trailers of a request", () => [
    headersFrame(newStream(0), HEADERS),
    headersFrame(newStream(0), { "x-trailer": "v", ":path": "/" }, END_HEADERS | END_STREAM),
  ]),
  injected("padding longer than its frame", (random) => [
    frame(
      FRAME.headers,
      END_HEADERS | PADDED,
      newStream(0),
      Buffer.concat([Buffer.from([255]), headerBlock(HEADERS)]),
    ),
    frame(FRAME.data, PADDED, newStream(0), Buffer.from([random.below(256)])),
  ]),
  injected("a message longer than it says, or than is allowed", (random) => [
    headersFrame(newStream(0), HEADERS),
    frame(
      FRAME.data,
      END_STREAM,
      newStream(0),
      Buffer.concat([Buffer.from([random.below(3)]), uint32(pick(random, EXTREMES)), anyBytes(random, 50)]),
    ),
  ]),
  injected("windows that overflow, or open by nothing", (random) => [
    frame(FRAME.windowUpdate, 0, pick(random, [0, 1, newStream(0)]), uint32(pick(random, EXTREMES))),
  ]),
  injected("a window of nothing", () => [
    frame(FRAME.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)])),
  ]),
  flood("settings, over and over", (random) =>
    frame(
      FRAME.settings,
      0,
      0,
      Buffer.concat([Buffer.from([0, 1 + random.below(9)]), uint32(pick(random, EXTREMES))]),
    ),
  ),
  flood("empty settings, over and over", () => frame(FRAME.settings, 0, 0)),
  flood("pings, over and over", (random) => frame(FRAME.ping, random.below(2), 0, anyBytes(random, 8))),
  flood("windows opened byte by byte", () => frame(FRAME.windowUpdate, 0, 0, uint32(1))),
  flood("empty data", () => frame(FRAME.data, 0, 1)),
  flood("priorities that depend on themselves", (_random, number) =>
    frame(
      FRAME.priority,
      0,
      newStream(number),
      Buffer.concat([uint32(newStream(number)), Buffer.from([255])]),
    ),
  ),
  flood("streams that are reset at once", (random, number) => {
    const streamId = newStream(number);
    return Buffer.concat([
      headersFrame(streamId, HEADERS),
      frame(FRAME.resetStream, 0, streamId, uint32(random.below(14))),
    ]);
  }),
  flood("streams that never end", (_random, number) => headersFrame(newStream(number), HEADERS)),
  flood("calls on streams of any number", (random) =>
    headersFrame(random.below(200), HEADERS, END_HEADERS | pick(random, [0, END_STREAM, WITH_PRIORITY])),
  ),
  flood("resets of streams that never were", (random) =>
    frame(FRAME.resetStream, 0, random.below(0x7fffffff), uint32(8)),
  ),
  flood("frames of types that there are not", (random) =>
    frame(10 + random.below(246), random.below(256), random.below(9), anyBytes(random, random.below(100))),
  ),
  injected("a farewell, and then more", (random) => [
    frame(
      FRAME.goaway,
      0,
      0,
      Buffer.concat([uint32(pick(random, EXTREMES)), uint32(random.below(14)), anyBytes(random, 20)]),
    ),
  ]),
  injected("a promise, which only servers make", (random) => [
    frame(5, END_HEADERS, 1, Buffer.concat([uint32(2 + random.below(10)), headerBlock(HEADERS)])),
  ]),
  {
    name: "another protocol after the preface",
    mutate: (frames) => [
      ...frames.slice(0, 2),
      Buffer.from("GET / HTTP/1.1\r\nhost: [\r\n\r\n"),
      ...frames.slice(2),
    ],
  },
];
