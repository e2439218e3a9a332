import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { countedAddress } from "../bounds/connections.ts";

/** One encoding of a file. */
export interface EncodedFile {
  /** The value of `Content-Encoding`. */
  readonly encoding: Encoding;
  readonly bytes: Buffer;
  /** The value of `ETag`. */
  readonly etag: string;
}

/** A file that is served from memory. */
export interface StaticFile {
  /** The value of `Content-Type`. */
  readonly type: string;
  /** Whether the name has a hash of the contents, so that the file never changes. */
  readonly immutable: boolean;
  /** Smallest first; the last one is not compressed. */
  readonly encodings: readonly EncodedFile[];
}

/** The encodings, smallest first, with the ending of their files. */
export const ENCODINGS = { br: ".br", gzip: ".gz", identity: "" } as const;
/** The name of an encoding. */
export type Encoding = keyof typeof ENCODINGS;

const MIB = 1024 * 1024;
/** Unread bytes of files for all peers; the page's first load is 0.2 MiB. */
const MAX_UNREAD_BYTES = 32 * MIB;
/** For one address, which may be a balancer's: others have room while a peer reads nothing. */
const MAX_UNREAD_BYTES_PER_ADDRESS = 8 * MIB;
/** A peer that reads nothing of a file for so long is cut. */
const MAX_SILENCE_MS = 30_000;

/**
 * Returns a function that answers a GET or HEAD with a file; with 304 if the client has it
 * (https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2). It sends files within a budget of unread bytes, because a file
 * needs no credential: beyond 32 MiB, or 8 MiB of one address, the answer is 503 with Retry-After.
 */
export function createFileSender() {
  const unread = { all: 0, byAddress: new Map<string, number>() };

  /** Counts bytes until the response closes; returns false if there is no room. */
  function reserve(address: string, bytes: number, response: ServerResponse): boolean {
    const ofAddress = unread.byAddress.get(address) ?? 0;
    if (unread.all + bytes > MAX_UNREAD_BYTES) return false;
    if (ofAddress + bytes > MAX_UNREAD_BYTES_PER_ADDRESS) return false;
    unread.all += bytes;
    unread.byAddress.set(address, ofAddress + bytes);
    response.once("close", () => {
      unread.all -= bytes;
      const left = (unread.byAddress.get(address) ?? 0) - bytes;
      if (left > 0) unread.byAddress.set(address, left);
      else unread.byAddress.delete(address);
    });
    return true;
  }

  return (file: StaticFile, request: IncomingMessage, response: ServerResponse): void => {
    const sent = prepare(file, request, response);
    if (sent === undefined) return;
    if (!reserve(countedAddress(request.socket.remoteAddress ?? ""), sent.byteLength, response)) {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      response.writeHead(503, { "retry-after": "1", "cache-control": "no-store" });
      response.end();
      return;
    }
    response.setTimeout(MAX_SILENCE_MS, () => response.destroy());
    response.end(sent);
  };
}

/** Writes the headers; returns the bytes to send, or undefined if the answer has ended without any. */
function prepare(file: StaticFile, request: IncomingMessage, response: ServerResponse): Buffer | undefined {
  const { "accept-encoding": accepted, "if-none-match": condition } = request.headers;
  const { encoding, bytes, etag } = chooseEncoding(file, accepted as string | undefined);
  response.setHeader("etag", etag);
  response.setHeader("vary", "Accept-Encoding");
  response.setHeader("cache-control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  const known = condition?.split(",") ?? [];
  if (known.some((tag) => tag.trim().replace(/^W\//, "") === etag)) {
    response.writeHead(304);
    response.end();
    return undefined;
  }
  response.statusCode = 200;
  response.setHeader("content-type", file.type);
  response.setHeader("content-length", bytes.byteLength);
  if (encoding !== "identity") response.setHeader("content-encoding", encoding);
  if (request.method !== "HEAD") return bytes;
  response.end();
  return undefined;
}

/** Returns the tag of an encoded file. Each encoding has its own: https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3.3 */
export function etagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
}

/** Returns the smallest encoding of a file that an `Accept-Encoding` header allows; undefined as the header: none is named. */
function chooseEncoding({ encodings }: StaticFile, accepted: string | undefined): EncodedFile {
  const allowed = new Set(
    (accepted ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => part.split(";").map((text) => text.trim()))
      .filter(([, quality = ""]) => !/^q=0(\.0*)?$/.test(quality))
      .map(([name]) => name),
  );
  const chosen = encodings.find(({ encoding }) => encoding === "identity" || allowed.has(encoding));
  if (chosen === undefined) throw new Error("a file has no uncompressed copy");
  return chosen;
}
