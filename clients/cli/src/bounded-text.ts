import type { Readable } from "node:stream";
import { UsageError } from "./failure.ts";

/** Reads a stream to its end, as UTF-8. @throws UsageError if it has more than `maxBytes`, or is not UTF-8. */
export async function readText(name: string, stream: Readable, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new UsageError(`${name} has more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new UsageError(`${name} is not UTF-8.`);
  }
}
