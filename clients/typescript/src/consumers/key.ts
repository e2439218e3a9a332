import type { Violation } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import { warn } from "../run/events.ts";
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

/**
 * Warns, once per consumer, of a key that is the delivery's own id: it changes when the producer sends the same
 * operation again, which then runs again.
 */
export class DeliveryIdWarning {
  #given = false;

  check(key: string, deliveryIds: readonly (string | undefined)[]): void {
    if (this.#given || !deliveryIds.includes(key)) return;
    this.#given = true;
    warn(
      `The key ${JSON.stringify(key)} is the id of the delivery. Sent again, the same operation has another id and is ` +
        "done again: let the producer make a key of the operation's own.",
      "ONCEWARD_DELIVERY_ID_AS_KEY",
    );
  }
}
