import { once } from "node:events";
import http2, {
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
} from "../../../clients/typescript/src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../clients/typescript/src/gen/google/rpc/status_pb.ts";
import type { ClientTls } from "../calls/clients.ts";

/** The answer to a call with any bytes. */
export interface RawAnswer {
  /** "OK" or the name of a code. */
  readonly code: string;
  readonly message: string;
  readonly reason: string | undefined;
  readonly fields: readonly string[];
}

/** Opens an HTTP/2 connection, over TLS if `tls` is given. */
export async function connectHttp2(port: number, tls?: ClientTls): Promise<ClientHttp2Session> {
  const session = http2.connect(`${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`, tls);
  session.on("error", () => {});
  await once(session, "connect");
  return session;
}

/** Returns the path of a method of IdempotencyService; a path is returned as it is. */
export function pathOf(method: string): string {
  return method.startsWith("/") ? method : `/onceward.v1.IdempotencyService/${method}`;
}

/** Returns the headers of a native gRPC call. */
export function grpcHeaders(
  method: string,
  apiKey: string | undefined,
  more: OutgoingHttpHeaders = {},
): OutgoingHttpHeaders {
  return {
    ":method": "POST",
    ":path": pathOf(method),
    "content-type": "application/grpc",
    te: "trailers",
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...more,
  };
}

/** Returns a message with gRPC's prefix of five bytes. */
export function frameOf(message: Uint8Array, flags = 0): Buffer {
  const frame = Buffer.alloc(5 + message.byteLength);
  frame.writeUInt8(flags);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, 5);
  return frame;
}

/** Returns an encoded message with its prefix. */
export function framed<Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): Buffer {
  return frameOf(toBinary(desc, create(desc, message)));
}

/**
 * Sends a body; resolves with the answer. The code of a stream that was reset is `RESET` with the code's
 * number.
 */
export function callRaw(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Uint8Array,
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const stream = session.request(headers);
    let answer: RawAnswer | undefined;
    const take = (received: IncomingHttpHeaders) => {
      if (received["grpc-status"] !== undefined) answer = readAnswer(received);
      else if (received[":status"] !== undefined && Number(received[":status"]) !== 200)
        answer = { code: `HTTP ${received[":status"]}`, message: "", reason: undefined, fields: [] };
    };
    stream.on("response", take);
    stream.on("trailers", take);
    stream.on("error", () => {});
    stream.on("close", () =>
      resolve(answer ?? { code: `RESET ${stream.rstCode}`, message: "", reason: undefined, fields: [] }),
    );
    stream.resume();
    stream.end(body);
  });
}

function readAnswer(headers: IncomingHttpHeaders): RawAnswer {
  const number = Number(headers["grpc-status"]);
  const details = headers["grpc-status-details-bin"];
  const status =
    typeof details === "string" ? fromBinary(StatusSchema, Buffer.from(details, "base64")) : undefined;
  const any = status?.details ?? [];
  const info = any.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find(Boolean);
  const badRequest = any.map((detail) => anyUnpack(detail, BadRequestSchema)).find(Boolean);
  return {
    code: number === 0 ? "OK" : (Code[number] ?? String(number)),
    message: decodeURIComponent(String(headers["grpc-message"] ?? "")),
    reason: info?.reason,
    fields: badRequest?.fieldViolations.map(({ field }) => field) ?? [],
  };
}
