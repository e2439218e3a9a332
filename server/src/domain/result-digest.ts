import { createHash } from "node:crypto";
import type { Result } from "./record.ts";

/**
 * SHA-256 over everything that a replay would show, each part length-prefixed, metadata in the order of its names.
 * Kept beside the result, so that a repeated Complete is told from a different one even when the result itself is gone.
 */
export function digestResult(result: Result): Buffer {
  const names = Object.keys(result.metadata).sort();
  const texts = [
    result.kind,
    result.contentType,
    ...names.flatMap((name) => [name, result.metadata[name] ?? ""]),
  ];
  const beforePayload = texts.map((text) => `${Buffer.byteLength(text)}:${text}`).join("");
  return createHash("sha256")
    .update(`${beforePayload}${result.payload.byteLength}:`)
    .update(result.payload)
    .digest();
}
