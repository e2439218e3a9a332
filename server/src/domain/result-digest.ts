import { createHash } from "node:crypto";
import type { Result } from "./record.ts";

/**
 * SHA-256 over everything that a replay would show, each part length-prefixed, metadata in the order of its names.
 * Kept beside the result, so that a repeated Complete is told from a different one even when the result itself is gone.
 */
export function digestResult(result: Result): Buffer {
  const hash = createHash("sha256");
  const names = Object.keys(result.metadata).sort();
  const texts = [
    result.kind,
    result.contentType,
    ...names.flatMap((name) => [name, result.metadata[name] ?? ""]),
  ];
  for (const text of texts) hash.update(`${Buffer.byteLength(text)}:${text}`);
  return hash.update(`${result.payload.byteLength}:`).update(result.payload).digest();
}
