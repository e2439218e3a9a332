import { createHash } from "node:crypto";
import type { Result } from "./record.ts";
import { decodeMetadata } from "./result-bytes.ts";

/**
 * Returns SHA-256 over all parts of a result that a replay returns, each length-prefixed, metadata in the
 * order of its names. It is stored with the result, so that a repeated Complete can be distinguished from a
 * different one after the result has expired.
 */
export function digestResult(result: Result): Buffer {
  const metadata = decodeMetadata(result.metadataJson);
  const names = Object.keys(metadata).sort();
  const texts = [result.kind, result.contentType, ...names.flatMap((name) => [name, metadata[name] ?? ""])];
  const beforePayload = texts.map((text) => `${Buffer.byteLength(text)}:${text}`).join("");
  return createHash("sha256")
    .update(`${beforePayload}${result.payload.byteLength}:`)
    .update(result.payload)
    .digest();
}
