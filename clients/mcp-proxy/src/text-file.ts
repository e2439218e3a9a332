import { createReadStream } from "node:fs";
import { buffer } from "node:stream/consumers";
import { messageOf, UsageError } from "./failure.ts";

/**
 * Returns the text of a file.
 *
 * @param name names the contents in the error.
 * @throws UsageError if the file can't be read or has more bytes.
 */
export async function readTextFile(file: string, name: string, maxBytes: number): Promise<string> {
  // `end` is the position of the last byte: one more than allowed.
  const bytes = await buffer(createReadStream(file, { end: maxBytes })).catch((error) => {
    throw new UsageError(`The ${name} can't be read: ${messageOf(error)}.`);
  });
  if (bytes.byteLength > maxBytes) throw new UsageError(`The ${name} must have at most ${maxBytes} bytes.`);
  return bytes.toString();
}
