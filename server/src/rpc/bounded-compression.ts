import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";

/** An algorithm as connect-node takes it. */
type Compression = typeof compressionGzip;

/**
 * A small body may swell to the limit of a message, and connect-node decompresses before anybody has asked whose it is.
 * So few are decompressed at a time, whoever sent them: memory is bounded by this, not by the number of callers.
 */
const MAX_AT_ONCE = 2;

/** What the port for HTTP/1.1 takes and answers with. */
export function createBoundedCompressions(): Compression[] {
  const enter = createTurnstile();
  return [compressionGzip, compressionBrotli].map((compression) => ({
    ...compression,
    decompress: (bytes, readMaxBytes) => enter(() => compression.decompress(bytes, readMaxBytes)),
  }));
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
      // Whoever leaves hands the place over, so that nobody slips in between.
      if (next === undefined) inside--;
      else next();
    }
  };
}
