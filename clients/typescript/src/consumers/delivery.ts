import { InProgressError, type OncewardError, type TerminalError } from "../errors/errors.ts";
import { warn } from "../run/events.ts";

/**
 * What became of one delivery of a message.
 *
 * - `processed`: the function ran now, and the operation is stored as done.
 * - `duplicate`: the operation was done before, and the function did not run. `error` is there if it had failed for good.
 * - `failed`: the function ran now and threw a TerminalError, which is stored; it will not run again.
 * - `refused`: nothing can be claimed: the message has no key or one over the limits, or its key stands for another
 *   fingerprint. It would be the same next time.
 * - `released`: the function ran and threw; the claim is released, and the next delivery runs it again. Where the release
 *   failed (the client's event `not-released`), the next delivery runs it once the lease has run out.
 * - `postponed`: it can't be known now: somebody else is doing it (InProgressError), nobody knows whether it was done
 *   (AmbiguousError), the service is away, or could not be told of the effect (CompletionError). Worth asking again in
 *   `delayMs`.
 *
 * The first three are settled; a crash before the broker learns of it makes a duplicate of the next delivery.
 */
export type Delivery<Value = unknown> =
  | { readonly kind: "processed"; readonly key: string; readonly attempt: number; readonly value: Value }
  | {
      readonly kind: "duplicate";
      readonly key: string;
      /** Undefined also if what was stored is no longer there. */
      readonly value: Value | undefined;
      readonly error: TerminalError | undefined;
    }
  | { readonly kind: "failed"; readonly key: string; readonly error: TerminalError }
  | { readonly kind: "refused"; readonly key: string | undefined; readonly error: OncewardError }
  | { readonly kind: "released"; readonly key: string; readonly error: unknown }
  | {
      readonly kind: "postponed";
      readonly key: string;
      readonly error: OncewardError;
      readonly delayMs: number;
    };

/** For a consumer without a hook: what went wrong is at least a warning of the process. */
export function warnOfTrouble(delivery: Delivery): void {
  if (delivery.kind === "processed" || delivery.kind === "duplicate") return;
  const { kind, key, error } = delivery;
  if (kind === "postponed" && error instanceof InProgressError) return;
  warn(`The message with the key ${JSON.stringify(key)} is ${kind}: ${error}`, "ONCEWARD_NOT_PROCESSED");
}
