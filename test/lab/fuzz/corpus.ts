import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  BatchRequestSchema,
  ClaimRequestSchema,
  CompleteRequestSchema,
  LookupRequestSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
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
import { pick } from "./mutation.ts";

/** The client's side of a valid conversation; a frame is the unit of most mutations. */
export interface Transcript {
  readonly kind: string;
  readonly port: Exclude<keyof Addresses, "socket">;
  readonly isHttp2: boolean;
  readonly frames: readonly Buffer[];
}

/** The acknowledgement of the server's settings. */
const ACKNOWLEDGED = frame(FRAME.settings, 0x1, 0);

/** Returns one of the conversations, with a valid credential. */
export function anyTranscript(random: Random, apiKey: string): Transcript {
  const make = pick(random, [grpc, grpc, grpc, connect, connect, grpcWeb, grpcWeb, management, health]);
  return make(random, apiKey);
}

/** Returns a method and a request of it. The keys are few, so that calls share records. */
function anyCall(random: Random): {
  readonly method: string;
  readonly message: Uint8Array;
  readonly json: string;
} {
  const id = { namespace: "fuzz", key: `k${random.below(20)}` };
  const result = { kind: Result_Kind.SUCCESS, payload: new Uint8Array(random.below(2000)) };
  const claim = { ...id, fingerprint: new Uint8Array(32), owner: "fuzzer" };
  const items = [
    { request: { case: "claim", value: claim } as const },
    { request: { case: "lookup", value: id } as const },
  ];
  switch (random.below(4)) {
    case 0:
      return {
        method: "Lookup",
        message: toBinary(LookupRequestSchema, create(LookupRequestSchema, id)),
        json: JSON.stringify(id),
      };
    case 1: {
      const message = toBinary(
        CompleteRequestSchema,
        create(CompleteRequestSchema, { ...id, fencingToken: 1n, result }),
      );
      return {
        method: "Complete",
        message,
        json: JSON.stringify({ ...id, fencingToken: "1", result: { kind: 1 } }),
      };
    }
    case 2: {
      const message = toBinary(BatchRequestSchema, create(BatchRequestSchema, { items }));
      return { method: "Batch", message, json: JSON.stringify({ items: [{ lookup: id }, { claim: id }] }) };
    }
    default:
      return {
        method: "Claim",
        message: toBinary(ClaimRequestSchema, create(ClaimRequestSchema, claim)),
        json: JSON.stringify(id),
      };
  }
}

/** Returns the headers of a native gRPC call. */
export function callHeaders(path: string, apiKey: string): Record<string, string> {
  return {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "localhost",
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${apiKey}`,
  };
}

/** Returns two or three calls on one connection, one of them in pieces and one compressed. */
function grpc(random: Random, apiKey: string): Transcript {
  const frames = [PREFACE, frame(FRAME.settings, 0, 0), ACKNOWLEDGED];
  const calls = 1 + random.below(3);
  for (let call = 0; call < calls; call++) {
    const streamId = call * 2 + 1;
    const { method, message } = anyCall(random);
    const isCompressed = random.below(4) === 0;
    const headers = {
      ...callHeaders(pathOf(method), apiKey),
      ...(isCompressed && { "grpc-encoding": "gzip" }),
    };
    const body = isCompressed ? frameOf(gzipSync(message), 1) : frameOf(message);
    const cut = random.below(body.byteLength);
    frames.push(
      frame(FRAME.headers, END_HEADERS, streamId, headerBlock(headers)),
      frame(FRAME.data, 0, streamId, body.subarray(0, cut)),
      frame(FRAME.data, END_STREAM, streamId, body.subarray(cut)),
      frame(FRAME.windowUpdate, 0, 0, Buffer.from([0, 0, 4, 0])),
    );
  }
  frames.push(frame(FRAME.ping, 0, 0, Buffer.alloc(8, 7)));
  return { kind: "gRPC", port: "grpcPort", isHttp2: true, frames };
}

function health(_random: Random, apiKey: string): Transcript {
  const headers = callHeaders("/grpc.health.v1.Health/Check", apiKey);
  const frames = [
    PREFACE,
    frame(FRAME.settings, 0, 0),
    frame(FRAME.headers, END_HEADERS, 1, headerBlock(headers)),
    frame(FRAME.data, END_STREAM, 1, frameOf(new Uint8Array())),
  ];
  return { kind: "health", port: "grpcPort", isHttp2: true, frames };
}

/** Returns two requests in sequence, each as its lines, the end of its head, and its body. */
function connect(random: Random, apiKey: string): Transcript {
  const frames = [0, 1].flatMap(() => {
    const { method, json, message } = anyCall(random);
    const isJson = random.below(2) === 0;
    const body = isJson ? Buffer.from(json) : Buffer.from(message);
    return http1(method, apiKey, isJson ? "application/json" : "application/proto", body);
  });
  return { kind: "Connect", port: "httpPort", isHttp2: false, frames };
}

function grpcWeb(random: Random, apiKey: string): Transcript {
  const { method, message } = anyCall(random);
  const frames = http1(method, apiKey, "application/grpc-web+proto", frameOf(message));
  return { kind: "gRPC-Web", port: "httpPort", isHttp2: false, frames };
}

function http1(method: string, apiKey: string, contentType: string, body: Buffer): readonly Buffer[] {
  const lines = [
    `POST ${pathOf(method)} HTTP/1.1`,
    "host: localhost",
    `content-type: ${contentType}`,
    `authorization: Bearer ${apiKey}`,
    "connect-timeout-ms: 2000",
    `content-length: ${body.byteLength}`,
    "",
  ];
  const half = body.byteLength >> 1;
  return [...lines.map((line) => Buffer.from(`${line}\r\n`)), body.subarray(0, half), body.subarray(half)];
}

function management(random: Random): Transcript {
  const path = pick(random, ["/livez", "/readyz", "/metrics", "/nowhere"]);
  const frames = [`GET ${path} HTTP/1.1\r\n`, "host: localhost\r\n", "\r\n"].map((line) => Buffer.from(line));
  return { kind: "management", port: "managementPort", isHttp2: false, frames };
}
