import { base64Url } from "../wire/base64-url.ts";
import { sha256 } from "../wire/sha256.ts";
import { utf8Length } from "../wire/utf8.ts";

/** Changing it changes every derived key, and with it what a downstream takes for a repeat: never within a major version. */
const SCHEME = "onceward.derived-key.v1";

/**
 * A key for a downstream: 43 characters of base64url, the SHA-256 of the record's name and the label. Each part is
 * prefixed with its length, so that no two ways of dividing a text give the same key.
 *
 * The same for every attempt and every process, so that a downstream which honours idempotency keys absorbs the repeat
 * that a crash made necessary; another for every label; and it doesn't tell the key it was made from.
 */
export function deriveKey(namespace: string, key: string, label: string): string {
  const parts = [SCHEME, namespace, key, label];
  return base64Url(sha256(parts.map((part) => `${utf8Length(part)}:${part}`).join("")));
}
