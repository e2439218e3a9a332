import type { Violation } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";

/** The header, attribute or property that carries a message's operation key. */
export const KEY_HEADER = "idempotency-key";

/**
 * Returns the key if it is valid. Checked in the producer, where the mistake is made.
 *
 * @throws OncewardError INVALID_REQUEST.
 */
export function checkedKey(key: string): string {
  const violations: Violation[] = [];
  checkText(violations, "key", key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  throwIfAny(violations);
  return key;
}
