import { AmbiguousError, InProgressError } from "../errors/errors.ts";
import { sleep } from "../run/retry.ts";
import type { Delivery } from "./delivery.ts";

/** Two extensions may fail before another consumer sees the message. */
const HIDDEN_MS = 60_000;
const EXTENSION_INTERVAL_MS = HIDDEN_MS / 3;
/** SQS hides a message for at most 12 hours after its receipt; what is left is for the function. */
const MAX_HOLD_MS = 11 * 3_600_000;

/**
 * Handles a message, and while the service is away keeps it hidden and tries again: as long as the queue shows it to no
 * consumer, it counts no further receive. Any other outcome is returned as it is, and so is the last one after 11 hours or
 * once the client is closed.
 *
 * @param hide hides the message from now on for so long.
 * @throws what `hide` rejects with: the queue delivers the message again.
 */
export async function handleHeld<Value>(
  handle: () => Promise<Delivery<Value>>,
  hide: (forMs: number) => Promise<unknown>,
): Promise<Delivery<Value>> {
  const holdUntilMs = performance.now() + MAX_HOLD_MS;
  let delivery = await handle();
  if (!isServiceAway(delivery)) return delivery;
  const failures: unknown[] = [];
  // For an attempt that takes long: the function runs in the last one.
  const extensions = setInterval(() => {
    hide(HIDDEN_MS).catch((error) => failures.push(error));
  }, EXTENSION_INTERVAL_MS);
  try {
    while (isServiceAway(delivery) && performance.now() < holdUntilMs) {
      if (failures.length > 0) throw failures[0];
      await hide(delivery.delayMs + HIDDEN_MS);
      await sleep(delivery.delayMs);
      delivery = await handle();
    }
    return delivery;
  } finally {
    clearInterval(extensions);
  }
}

/**
 * Returns whether the message waits for the service, or for the consumer's settings, as all messages do then. One that waits
 * for another holder or for a decision on an ambiguous record is not held: it would keep the consumer from the others.
 */
function isServiceAway<Value>(
  delivery: Delivery<Value>,
): delivery is Delivery<Value> & { kind: "postponed" } {
  if (delivery.kind !== "postponed") return false;
  const { error } = delivery;
  const isAboutRecord = error instanceof InProgressError || error instanceof AmbiguousError;
  return !isAboutRecord && error.reason !== "CLOSED" && error.reason !== "CLAIM_SUPERSEDED";
}
