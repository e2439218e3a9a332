import { promisify } from "node:util";
import zlib from "node:zlib";
import { Code } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { malformed, ProtocolError } from "../errors.ts";

/** A compression of messages, by its name in headers. */
export type Compression = "gzip" | "deflate" | "br";

const INFLATERS = {
  gzip: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  deflate: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate),
  br: promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
};

/** Any message may inflate to so many bytes, and a larger one by this ratio. */
const MAX_FREE_BYTES = 256 * 1024;
const MAX_RATIO = 200;
/**
 * Messages that the process inflates at once, so that their memory does not grow with the number of callers.
 */
const MAX_AT_ONCE = 2;

const limitConcurrency = createLimiter();

/**
 * Decompresses a message on the thread pool. Stops as soon as the message is too large.
 *
 * @throws Refusal INVALID_REQUEST if the message is damaged, larger than `maxBytes`, or larger than 256 KiB
 *   and than 200 times its compressed size.
 */
export async function inflate(message: Buffer, compression: Compression, maxBytes: number): Promise<Buffer> {
  const maxGrownBytes = Math.max(MAX_FREE_BYTES, MAX_RATIO * message.byteLength);
  const maxOutputLength = Math.min(maxBytes, maxGrownBytes);
  try {
    return await limitConcurrency(() => INFLATERS[compression](message, { maxOutputLength }));
  } catch (error) {
    if (!isTooLarge(error)) throw malformed(`can't be decompressed as ${compression}`, error);
    if (maxOutputLength === maxBytes) throw malformed(`must be at most ${maxBytes} bytes`);
    throw malformed(`must not be compressed to less than 1/${MAX_RATIO} of its size`);
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}

/**
 * Returns the compression that `grpc-encoding` names; undefined if it names none, and the message is read as
 * it is.
 *
 * @throws ProtocolError UNIMPLEMENTED if the server does not know the compression.
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

const compressBrotli = promisify<Uint8Array, zlib.BrotliOptions, Buffer<ArrayBuffer>>(zlib.brotliCompress);
/** Node's default, 11, takes ten seconds for a reply of 4 MiB, on one of four threads. */
const BROTLI_QUALITY = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } };

/**
 * The compressions of connect-node's replies, if the caller accepts one. Requests are decompressed by
 * `inflate`.
 */
export const REPLY_COMPRESSIONS: (typeof compressionGzip)[] = [
  { ...compressionGzip, decompress: refuseToDecompress },
  {
    ...compressionBrotli,
    compress: (bytes) => compressBrotli(bytes, BROTLI_QUALITY),
    decompress: refuseToDecompress,
  },
];

function refuseToDecompress(): Promise<never> {
  throw new Error("connect-node was given a compressed message");
}

/**
 * Returns a function that runs up to `MAX_AT_ONCE` tasks at once; further ones wait in the order of their
 * calls.
 */
function createLimiter(): <Value>(work: () => Promise<Value>) => Promise<Value> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The slot passes to the next task directly, so that a new one can't take it in between.
      if (next === undefined) running--;
      else next();
    }
  };
}
