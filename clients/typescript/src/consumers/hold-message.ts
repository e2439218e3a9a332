import { AmbiguousError, InProgressError } from "../errors/errors.ts";
import { sleep } from "../run/retry.ts";
import type { Delivery } from "./delivery.ts";

/** Three times the extension interval: two extensions may fail before another consumer sees the message. */
const HIDDEN_MS = 60_000;
const EXTENSION_INTERVAL_MS = HIDDEN_MS / 3;
/** SQS hides a message for at most 12 hours after its receipt; the last hour is for the function. */
const MAX_HOLD_MS = 11 * 3_600_000;

/**
 * Handles a message. While the service is unreachable, keeps the message hidden and tries again: as long as the queue
 * shows it to no consumer, it counts no further receive. Resolves with any other outcome, and with the last one after
 * 11 hours or once the client is closed.
 *
 * @param hide hides the message for that long, from now.
 * @throws the error of `hide`: the queue then delivers the message again.
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
 * Returns whether the message waits for the service, or for the consumer's settings, as all messages then do. A
 * message that waits for another holder or for the resolution of an ambiguous record is not held: it would block the
 * other messages.
 */
export function isServiceAway<Value>(
  delivery: Delivery<Value>,
): delivery is Delivery<Value> & { kind: "postponed" } {
  if (delivery.kind !== "postponed") return false;
  const { error } = delivery;
  const isAboutRecord = error instanceof InProgressError || error instanceof AmbiguousError;
  return !isAboutRecord && error.reason !== "CLOSED" && error.reason !== "CLAIM_SUPERSEDED";
}
