import {
  BatchRequestSchema,
  ClaimRequestSchema,
} from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { WhoAmIRequestSchema } from "../../../clients/typescript/src/gen/onceward/v1/identity_pb.ts";
import { ServerReflectionRequestSchema } from "../../../server/src/gen/grpc/reflection/v1/reflection_pb.ts";
import { connectClient } from "../calls/clients.ts";
import { grant, success } from "../calls/verbs.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
  openHttp2,
  openWindows,
} from "../network/http2-frames.ts";
import { framed, pathOf } from "../network/raw-grpc.ts";
import { openSocket, type RawSocket } from "../network/raw-socket.ts";
import type { Target } from "./hostility.ts";

/** Opens connections that read nothing, and sends the same bytes on each. The caller destroys their sockets. */
export async function floodWith(
  port: number,
  connections: number,
  bytes: string,
): Promise<readonly RawSocket[]> {
  return await sendOnEach(connections, () => openSocket(port), bytes);
}

async function sendOnEach(connections: number, open: () => Promise<RawSocket>, bytes: string | Buffer) {
  const sockets = await Promise.all(Array.from({ length: connections }, open));
  for (const { socket, send } of sockets) {
    socket.pause();
    void send(bytes);
  }
  return sockets;
}

/** Calls over gRPC: each is a stream of its own. */
export interface GrpcFlood {
  readonly path: string;
  /** Undefined: without a credential. */
  readonly apiKey?: string | undefined;
  /** Beside those that gRPC needs. */
  readonly headers?: Readonly<Record<string, string>>;
  /** With its prefix of five bytes. */
  readonly message: Buffer;
  readonly streams: number;
}

/**
 * Opens HTTP/2 connections from which nothing is read, and sends the same calls on each. The server may send everything. The
 * caller destroys their sockets.
 */
export async function floodGrpcWith(
  port: number,
  connections: number,
  flood: GrpcFlood,
): Promise<readonly RawSocket[]> {
  return await sendOnEach(connections, () => openHttp2(port), grpcCalls(flood));
}

function grpcCalls({ path, apiKey, headers, message, streams }: GrpcFlood): Buffer {
  const block = headerBlock({
    ...headers,
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "a",
    "content-type": "application/grpc",
    te: "trailers",
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  });
  const frames = Array.from({ length: streams }, (_, call) => [
    headerFrames(call * 2 + 1, block),
    frame(FRAME.data, END_STREAM, call * 2 + 1, message),
  ]);
  return Buffer.concat([openWindows(), ...frames.flat()]);
}

/** RFC 9113, section 4.2. */
const FRAME_BYTES = 16_384;

/** Returns the frames of a header block. @param isWhole Whether the block ends: otherwise the server waits for more of it. */
function headerFrames(streamId: number, block: Buffer, isWhole = true): Buffer {
  const frames = [];
  for (let at = 0; at < block.byteLength; at += FRAME_BYTES) {
    const end = at + FRAME_BYTES;
    const flags = isWhole && end >= block.byteLength ? END_HEADERS : 0;
    frames.push(
      frame(at === 0 ? FRAME.headers : FRAME.continuation, flags, streamId, block.subarray(at, end)),
    );
  }
  return Buffer.concat(frames);
}

function longHeaders(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, "v".repeat(1000)]));
}

/**
 * Opens HTTP/2 connections, and sends the beginning of a header list on each: as much as a server reads of one that it
 * has not yet told its limit. The caller destroys their sockets.
 */
export async function floodWithBegunHeaders(
  port: number,
  connections: number,
): Promise<readonly RawSocket[]> {
  const bytes = headerFrames(1, headerBlock(longHeaders(140)), false);
  const sockets = await Promise.all(Array.from({ length: connections }, () => openHttp2(port)));
  for (const { send } of sockets) void send(bytes);
  return sockets;
}

/** Returns calls without a credential, each with so many kilobytes of headers. */
export function headerFlood(kilobytes: number, streams: number): GrpcFlood {
  return {
    path: "/onceward.v1.IdentityService/WhoAmI",
    headers: longHeaders(kilobytes),
    message: framed(WhoAmIRequestSchema, {}),
    streams,
  };
}

/** A server's windows for a connection take bodies of 64 KiB in all: fewer streams for larger messages. */
const MANY_STREAMS = 500;
const FEW_STREAMS = 12;

/** Returns floods of gRPC: calls that are refused, descriptors, and batches of the results that `largeBatch` stores. */
export function grpcFloods({ tenant: { apiKey } }: Target): Readonly<Record<string, GrpcFlood>> {
  const claim = framed(ClaimRequestSchema, { namespace: "reports", key: "report-0" });
  const describe = framed(ServerReflectionRequestSchema, {
    messageRequest: { case: "fileContainingSymbol", value: "onceward.v1.OperatorService" },
  });
  const items = RESULT_IDS.map((value) => ({ request: { case: "lookup" as const, value } }));
  const reflect = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  return {
    "claims with an invalid credential": {
      path: pathOf("Claim"),
      apiKey: `${apiKey}x`,
      message: claim,
      streams: MANY_STREAMS,
    },
    "WhoAmI without a credential": headerFlood(0, MANY_STREAMS),
    "calls with 15 kB of headers": headerFlood(15, MANY_STREAMS),
    "calls with 60 kB of headers": headerFlood(60, MANY_STREAMS),
    "reflection without a credential": { path: reflect, message: describe, streams: MANY_STREAMS },
    "reflection that is not read": { path: reflect, apiKey, message: describe, streams: MANY_STREAMS },
    "batches that are not read": {
      path: pathOf("Batch"),
      apiKey,
      message: framed(BatchRequestSchema, { items }),
      streams: FEW_STREAMS,
    },
  };
}

const RESULTS = 60;
const RESULT_IDS = Array.from({ length: RESULTS }, (_, n) => ({ namespace: "reports", key: `report-${n}` }));
const RESULT_BYTES = 60_000;

/** Stores 60 results of 60 KB; returns the HTTP/1.1 request of a batch that looks all of them up. */
export async function largeBatch({ server, tenant }: Target): Promise<string> {
  const client = connectClient(server, tenant.apiKey);
  for (const id of RESULT_IDS) {
    const { fencingToken } = await grant(client, id);
    await client.complete({ ...id, fencingToken, result: success("x".repeat(RESULT_BYTES)) });
  }
  const body = JSON.stringify({ items: RESULT_IDS.map((lookup) => ({ lookup })) });
  const head = [
    `POST ${pathOf("Batch")} HTTP/1.1`,
    "host: a",
    `authorization: Bearer ${tenant.apiKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** A request whose answer waits, if no one reads that of `OPENAPI_REQUEST` before it. */
export const LONG_REQUEST = `GET /livez HTTP/1.1\r\nhost: a\r\nx-long: ${"v".repeat(15_000)}\r\n\r\n`;

/** Requests that need no credential: of a file, of the metrics, and one that is refused for it. */
export const OPENAPI_REQUEST = "GET /openapi.yaml HTTP/1.1\r\nhost: a\r\n\r\n";
export const METRICS_REQUEST = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
export const WHO_AM_I_REQUEST = [
  "POST /onceward.v1.IdentityService/WhoAmI HTTP/1.1",
  "host: a",
  "content-type: application/json",
  "content-length: 2\r\n\r\n{}",
].join("\r\n");
