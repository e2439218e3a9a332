import { AmbiguousError, InProgressError } from "../errors/errors.ts";
import { sleep } from "../run/retry.ts";
import type { Delivery } from "./delivery.ts";

/** SQS hides a message for at most 12 hours after its receipt; the last hour is for the function. */
export const MAX_HOLD_MS = 11 * 3_600_000;

/**
 * Handles a message and concludes its delivery, and keeps it hidden meanwhile, for up to 11 hours. While the service is
 * unreachable, tries again: as long as the queue shows the message to no consumer, it counts no further receive. Concludes
 * any other outcome, and the last one after 11 hours or once the client is closed.
 *
 * @param hide hides the message for that long, from now.
 * @param hiddenMs how long the queue hides the message automatically. It is hidden again after every third: two extensions
 *   may fail before another consumer sees it.
 * @throws the error of `hide` while the service is unreachable: the queue then delivers the message again.
 */
export async function handleHeld<Value, Conclusion>(
  handle: () => Promise<Delivery<Value>>,
  conclude: (delivery: Delivery<Value>) => Promise<Conclusion>,
  hide: (forMs: number) => Promise<unknown>,
  hiddenMs: number,
): Promise<Conclusion> {
  const holdUntilMs = performance.now() + MAX_HOLD_MS;
  let failure: { readonly error: unknown } | undefined;
  const extensions = setInterval(() => {
    if (performance.now() > holdUntilMs) return;
    hide(hiddenMs).then(
      () => {
        failure = undefined;
      },
      (error) => {
        failure = { error };
      },
    );
  }, hiddenMs / 3);
  try {
    let delivery = await handle();
    while (waitsForService(delivery) && performance.now() < holdUntilMs) {
      if (failure !== undefined) throw failure.error;
      await hide(delivery.delayMs + hiddenMs);
      await sleep(delivery.delayMs);
      delivery = await handle();
    }
    return await conclude(delivery);
  } finally {
    clearInterval(extensions);
  }
}

/**
 * Returns whether the message waits for the service, or for the consumer's settings, as all messages then do. A
 * message that waits for another holder or for the resolution of an ambiguous record is not held: it would block the
 * other messages.
 */
export function waitsForService<Value>(
  delivery: Delivery<Value>,
): delivery is Delivery<Value> & { kind: "postponed" } {
  if (delivery.kind !== "postponed") return false;
  const { error } = delivery;
  const isAboutRecord = error instanceof InProgressError || error instanceof AmbiguousError;
  return !isAboutRecord && error.reason !== "CLOSED" && error.reason !== "CLAIM_SUPERSEDED";
}
