import { type Agent, request } from "node:http";
import { ConnectError as AnyConnectError, Code, type ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { describeError, type SeenError } from "../calls/errors.ts";
import { pathOf } from "./raw-grpc.ts";

/** The answer to a request with any body; of an error, the parts that the contract defines. */
export type HttpAnswer = { readonly status: number } & (
  | { readonly code: "OK"; readonly body: Buffer }
  | SeenError
);

/** How to send a body. */
export interface Sending {
  readonly contentType: string;
  readonly apiKey: string | undefined;
  /** Keeps connections open; without it, each request opens a new connection. */
  readonly agent?: Agent;
  /** Further headers; with `transfer-encoding: chunked`, no length is declared. */
  readonly more?: Readonly<Record<string, string>>;
}

/** Posts a body to a method, which is named as for `pathOf`. */
export function post(port: number, method: string, sending: Sending, body: Buffer): Promise<HttpAnswer> {
  const { contentType, apiKey, agent = false, more = {} } = sending;
  const headers = {
    "content-type": contentType,
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...(more["transfer-encoding"] === undefined && { "content-length": String(body.byteLength) }),
    ...more,
  };
  return new Promise((resolve, reject) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      method: "POST",
      path: pathOf(method),
      headers,
      agent,
    });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        const received = Buffer.concat(chunks);
        const error = contentType.includes("grpc-web") ? trailerError(received) : jsonError(status, received);
        resolve(
          error === undefined ? { status, code: "OK", body: received } : { status, ...describeError(error) },
        );
      });
      response.on("error", reject);
    });
    sent.end(body);
  });
}

/**
 * Returns the error of an answer; a body that is not JSON, such as that of Node's own 408, has only a status.
 */
function jsonError(status: number, body: Buffer): ConnectError | undefined {
  if (status === 200) return undefined;
  const fallback = new AnyConnectError(`HTTP ${status}`, Code.Unknown);
  try {
    return errorFromJsonBytes(body, undefined, fallback);
  } catch {
    return fallback;
  }
}

/** Returns the error in the trailers, which are the last frame of the body, after five bytes. */
function trailerError(body: Buffer): ConnectError | undefined {
  let start = 0;
  while (start < body.byteLength && body.readUInt8(start) < 0x80) start += 5 + body.readUInt32BE(start + 1);
  const lines = body
    .subarray(start + 5)
    .toString("latin1")
    .split("\r\n");
  const trailers = new Headers();
  for (const line of lines.filter(Boolean)) {
    const colon = line.indexOf(":");
    trailers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return findTrailerError(trailers);
}
