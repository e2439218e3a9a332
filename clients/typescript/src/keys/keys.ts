import { refusedField } from "../errors/violations.ts";
import { base64Url, sha256, utf8Length } from "../wire/bytes.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";

/**
 * Returns a key made of several parts, such as a transaction's id and the action: `joinKey("refund", "tx-12", 3)` is
 * `refund:tx-12:3`. Two different tuples never share a key; a number is its decimal text.
 *
 * - `:` and `%` within a part become `%3A` and `%25`.
 * - A key longer than 255 bytes becomes `%sha256:` and 43 characters of its hash.
 *
 * The same in every version, because keys outlive processes.
 *
 * @throws InvalidRequestError for no parts, and for a number that is not a safe integer: its text would not be exact.
 */
export function joinKey(...parts: readonly (string | number | bigint)[]): string {
  if (parts.length === 0) throw refusedField("key", "must have parts");
  const key = parts.map(escapePart).join(":");
  if (utf8Length(key) <= MAX_KEY_BYTES) return key;
  // In the readable form a "%" is never followed by an "s".
  return `%sha256:${base64Url(sha256(key))}`;
}

function escapePart(part: string | number | bigint): string {
  if (typeof part === "number" && !Number.isSafeInteger(part))
    throw refusedField("key", "must have whole numbers only");
  // As UTF-8, all lone surrogates would be the same character.
  if (typeof part === "string" && !part.isWellFormed())
    throw refusedField("key", "must be well-formed Unicode");
  return String(part).replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** Never changed within a major version: it changes every derived key, and downstreams would repeat effects. */
const DERIVED_KEY_SCHEME = "onceward.derived-key.v1";

/**
 * Returns a key for a downstream: 43 characters of base64url, the SHA-256 of the namespace, the key and the label.
 * Each part is prefixed with its length, so that no two ways of dividing a text give the same key.
 *
 * The derived key is the same on every attempt and in every process, so that a downstream which honours idempotency
 * keys absorbs the repeat after a crash. It differs for every label, and does not reveal the original key.
 */
export function deriveKey(namespace: string, key: string, label: string): string {
  const parts = [DERIVED_KEY_SCHEME, namespace, key, label];
  return base64Url(sha256(parts.map((part) => `${utf8Length(part)}:${part}`).join("")));
}

const EPOCH_MS = /^\d{13}$/;
const DAY_MS = 86_400_000;
/** As Date.toISOString prints a time. A time on a full second may be intended: a job that is due at midnight. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(?!0+\D)\d+(Z|[+-]\d\d:?\d\d)$/;

/**
 * Returns whether a key looks like the current time, which differs on each delivery: the whole key is an ISO 8601
 * time with a fraction of a second, or the milliseconds of a time within a day of the current time. Other numbers of 13 digits may
 * be ids.
 */
export function looksLikeTimestamp(key: string): boolean {
  if (EPOCH_MS.test(key)) return Math.abs(Date.now() - Number(key)) < DAY_MS;
  return ISO_TIME.test(key);
}
