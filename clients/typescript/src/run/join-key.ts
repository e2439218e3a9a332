import { base64Url } from "../wire/base64-url.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";
import { sha256 } from "../wire/sha256.ts";
import { utf8Length } from "../wire/utf8.ts";
import { refusedField } from "../errors/violations.ts";

/**
 * A key of several natural parts, such as a transaction's id and what is done to it: `joinKey("refund", "tx-12", 3)` is
 * `refund:tx-12:3`. No two different tuples share a key; a number is its decimal text.
 *
 * - `:` and `%` within a part become `%3A` and `%25`.
 * - What is longer than 255 bytes becomes `%sha256:` and 43 characters of its hash.
 *
 * The same in every version: keys outlive processes.
 *
 * @throws InvalidRequestError for no parts, and for a number that is no safe integer: its text would not be exact.
 */
export function joinKey(...parts: readonly (string | number | bigint)[]): string {
  if (parts.length === 0) throw refusedField("key", "must have parts");
  const key = parts.map(escaped).join(":");
  if (utf8Length(key) <= MAX_KEY_BYTES) return key;
  // In the readable form a "%" is never followed by an "s".
  return `%sha256:${base64Url(sha256(key))}`;
}

function escaped(part: string | number | bigint): string {
  if (typeof part === "number" && !Number.isSafeInteger(part))
    throw refusedField("key", "must have whole numbers only");
  // As UTF-8, each lone surrogate would be the same character.
  if (typeof part === "string" && !part.isWellFormed())
    throw refusedField("key", "must be well-formed Unicode");
  return String(part).replaceAll("%", "%25").replaceAll(":", "%3A");
}
