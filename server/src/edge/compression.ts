import { promisify } from "node:util";
import zlib from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { compressionGzip } from "@connectrpc/connect-node";
import { malformed, ProtocolError } from "./errors.ts";

/** What a message may be compressed by, as headers name it. */
export type Compression = "gzip" | "deflate" | "br";

const INFLATERS = {
  gzip: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  deflate: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate),
  br: promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
};

/** What a few bytes may inflate to; beyond it, how many times a message may grow. */
const MAX_FREE_BYTES = 256 * 1024;
const MAX_RATIO = 200;
/** Inflated at a time in the process, so that memory is bounded by this and not by the number of callers. */
const MAX_AT_ONCE = 2;

const enter = createTurnstile();

/**
 * Decompresses a message, outside of the event loop. Stops as soon as the message is too large.
 *
 * @throws Refusal INVALID_REQUEST if it is damaged, larger than `maxBytes`, or larger than 256 KiB and 200 times what came.
 */
export async function inflate(message: Buffer, compression: Compression, maxBytes: number): Promise<Buffer> {
  const maxGrownBytes = Math.max(MAX_FREE_BYTES, MAX_RATIO * message.byteLength);
  const maxOutputLength = Math.min(maxBytes, maxGrownBytes);
  try {
    return await enter(() => INFLATERS[compression](message, { maxOutputLength }));
  } catch (error) {
    if (!isTooLarge(error)) throw malformed("can't be decompressed", error);
    if (maxOutputLength === maxBytes) throw malformed(`must be at most ${maxBytes} bytes`);
    throw malformed(`must not be compressed to less than 1/${MAX_RATIO} of its size`);
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}

/**
 * Returns what `grpc-encoding` says of a compressed message of native gRPC; undefined if it says nothing, and the message is
 * read as it is.
 *
 * @throws ProtocolError UNIMPLEMENTED if it is a compression that the server does not know.
 */
export function grpcCompression(encoding: string | undefined): Compression | undefined {
  switch (encoding) {
    case "gzip":
    case "deflate":
      return encoding;
    case undefined:
    case "identity":
      return undefined;
    default:
      throw new ProtocolError(Code.Unimplemented, "Received a message of an unsupported compression");
  }
}

/** An algorithm as connect-node takes it. */
type ConnectCompression = typeof compressionGzip;

const compressGzip = promisify<Uint8Array, zlib.ZlibOptions, Buffer<ArrayBuffer>>(zlib.gzip);
const compressBrotli = promisify<Uint8Array, zlib.BrotliOptions, Buffer<ArrayBuffer>>(zlib.brotliCompress);
/** Node's own, 11, takes ten seconds for a reply of 4 MiB, and there are four threads for all. */
const BROTLI_QUALITY = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } };

/** What connect-node compresses replies by, where a caller accepts it. Requests are decompressed by `inflate`. */
export const REPLY_COMPRESSIONS: ConnectCompression[] = [
  { name: "gzip", compress: (bytes) => compressGzip(bytes, {}), decompress: refuseToDecompress },
  { name: "br", compress: (bytes) => compressBrotli(bytes, BROTLI_QUALITY), decompress: refuseToDecompress },
];

function refuseToDecompress(): Promise<never> {
  throw new Error("connect-node was handed a compressed message");
}

/** Lets so much work in at a time; the rest waits in the order in which it came. */
function createTurnstile(): <Value>(work: () => Promise<Value>) => Promise<Value> {
  const waiting: (() => void)[] = [];
  let inside = 0;
  return async (work) => {
    if (inside >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    else inside++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The place is handed over, so that a newcomer can't take it in between.
      if (next === undefined) inside--;
      else next();
    }
  };
}
