import type { Readable } from "node:stream";
import type { UniversalServerRequest as ServerRequest } from "@connectrpc/connect/protocol";
import { createByteCollector } from "./byte-collector.ts";
import type { Compression } from "./compression.ts";
import { createMessageReader, frameMessage } from "./grpc-messages.ts";
import { malformed, tooLarge } from "./malformed.ts";
import type { MessageLimits } from "./message-limits.ts";
import type { ReceivedMessage } from "./read-message.ts";
import { takeIn } from "./take-in.ts";

/** A request's message, before anything of it is read. */
export interface PendingMessage {
  /**
   * Takes the message in; called once at most.
   *
   * @throws Refusal INVALID_REQUEST if it is too large; CANCELLED as `takeIn`.
   * @throws MessageRefused if gRPC-Web's frame is none.
   */
  receive(limits: MessageLimits): Promise<ReceivedMessage>;
}

/** A request of Connect, gRPC-Web or JSON, apart from its message. */
export interface SplitRequest {
  /** The same request with an empty message, which connect-node can read in every protocol. */
  readonly empty: ServerRequest;
  readonly message: PendingMessage;
}

type Format = ReceivedMessage["format"];

/**
 * Splits a request, whose body comes as `body`. One that connect-node refuses by its headers stays so: what it says of them is
 * left to it.
 */
export function splitRequest(request: ServerRequest, body: Readable): SplitRequest {
  if (request.method === "GET") return splitGet(request);
  const contentType = request.header.get("content-type") ?? "";
  const format = contentType.toLowerCase().includes("json") ? "json" : "binary";
  return contentType.toLowerCase().startsWith("application/grpc-web")
    ? splitGrpcWeb(request, body, format)
    : splitConnect(request, body, format);
}

const EMPTY: Readonly<Record<Format, Buffer>> = { json: Buffer.from("{}"), binary: Buffer.alloc(0) };

/** https://connectrpc.com/docs/protocol#unary-get-request */
function splitGet(request: ServerRequest): SplitRequest {
  const url = new URL(request.url);
  const query = url.searchParams;
  const format = query.get("encoding") === "json" ? "json" : "binary";
  const text = query.get("message") ?? "";
  const isBase64 = query.get("base64") === "1";
  const compression = knownCompression(query.get("compression"));
  query.delete("base64");
  if (compression !== undefined) query.delete("compression");
  query.set("message", EMPTY[format].toString());
  return {
    empty: { ...request, url: url.href },
    message: {
      receive: async () => ({ bytes: isBase64 ? fromBase64(text) : Buffer.from(text), format, compression }),
    },
  };
}

function splitConnect(request: ServerRequest, body: Readable, format: Format): SplitRequest {
  const compression = knownCompression(request.header.get("content-encoding"));
  return {
    empty: withBody(request, EMPTY[format], "content-encoding"),
    message: {
      async receive(limits) {
        const { maxBytes } = limits[format];
        const declared = Number(request.header.get("content-length") ?? 0);
        if (declared > maxBytes) throw tooLarge(maxBytes, declared);
        const collected = createByteCollector();
        await takeIn(body, (piece) => {
          if (collected.byteLength + piece.byteLength > maxBytes) throw tooLarge(maxBytes, undefined);
          collected.push(piece);
        });
        return { bytes: collected.view(), format, compression };
      },
    },
  };
}

function splitGrpcWeb(request: ServerRequest, body: Readable, format: Format): SplitRequest {
  const compression = knownCompression(request.header.get("grpc-encoding"));
  return {
    empty: withBody(request, frameMessage(EMPTY[format]), "grpc-encoding"),
    message: {
      async receive(limits) {
        const reader = createMessageReader(limits[format].maxBytes);
        await takeIn(body, reader.push);
        const { message, compressed } = reader.end();
        return { bytes: message, format, compression: compressed ? compression : undefined };
      },
    },
  };
}

/** Those that connect-node offers; one that it doesn't know, it refuses. */
function knownCompression(name: string | null): Compression | undefined {
  return name === "gzip" || name === "br" ? name : undefined;
}

function withBody(request: ServerRequest, body: Uint8Array, encodingHeader: string): ServerRequest {
  const header = new Headers(request.header);
  header.delete("content-length");
  if (knownCompression(header.get(encodingHeader)) !== undefined) header.delete(encodingHeader);
  return { ...request, header, body: only(body) };
}

async function* only(body: Uint8Array): AsyncIterable<Uint8Array> {
  yield body;
}

/** Standard or URL-safe, with or without padding. */
function fromBase64(text: string): Buffer {
  const standard = text.replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  const bytes = Buffer.from(standard, "base64");
  // Node skips what is no base64.
  if (bytes.toString("base64").replace(/=+$/, "") !== standard) throw malformed("is not base64");
  return bytes;
}
