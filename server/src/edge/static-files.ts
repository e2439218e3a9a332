import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

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

/** Answers a GET or HEAD with a file; with 304 if the client has it (https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2). */
export function sendFile(file: StaticFile, request: IncomingMessage, response: ServerResponse): void {
  const { "accept-encoding": accepted, "if-none-match": condition } = request.headers;
  const { encoding, bytes, etag } = chooseEncoding(file, accepted as string | undefined);
  response.setHeader("etag", etag);
  response.setHeader("vary", "Accept-Encoding");
  response.setHeader("cache-control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  const known = condition?.split(",") ?? [];
  if (known.some((tag) => tag.trim().replace(/^W\//, "") === etag)) {
    response.writeHead(304);
    response.end();
    return;
  }
  response.writeHead(200, {
    "content-type": file.type,
    "content-length": bytes.byteLength,
    ...(encoding !== "identity" && { "content-encoding": encoding }),
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
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
