import { InProgressError, type OncewardError, type TerminalError } from "../errors/errors.ts";
import { warn } from "../run/events.ts";

/**
 * The outcome of one delivery of a message.
 *
 * - `processed`: the function ran now, and the operation is stored as done.
 * - `duplicate`: the operation was done before, and the function did not run. `error` is set if it failed
 *   permanently.
 * - `failed`: the operation failed permanently now: the function threw a TerminalError, or any error on the last of
 *   `maxAttempts`, or all of them ended without an outcome. The error is stored; the function will not run again.
 * - `refused`: the message can't be claimed: it has no valid key, its key belongs to another fingerprint, or the key is too
 *   old: the operation may have happened long ago. The next delivery would be refused, too.
 * - `released`: the function ran and threw; the claim is released, and the next delivery runs it again. If the
 *   release failed (the client's event `not-released`), the next delivery runs it once the lease has expired. After an
 *   interruption, or an OutcomeUnknownError, the claim is left to the namespace's policy. Try again in `delayMs`.
 * - `postponed`: the outcome is unknown for now: another holder runs the operation (InProgressError), it is unknown
 *   whether an earlier attempt had its effect (AmbiguousError), or the service was unreachable before or after the
 *   function ran (OncewardError, CompletionError). Try again in `delayMs`.
 *
 * The first three are settled. After a crash before the broker learns of it, the next delivery is a duplicate.
 */
export type Delivery<Value = unknown> =
  | { readonly kind: "processed"; readonly key: string; readonly attempt: number; readonly value: Value }
  | {
      readonly kind: "duplicate";
      readonly key: string;
      /** Also undefined if the stored value is no longer available. */
      readonly value: Value | undefined;
      readonly error: TerminalError | undefined;
    }
  | { readonly kind: "failed"; readonly key: string; readonly error: TerminalError }
  | { readonly kind: "refused"; readonly key: string | undefined; readonly error: OncewardError }
  | { readonly kind: "released"; readonly key: string; readonly error: unknown; readonly delayMs: number }
  | {
      readonly kind: "postponed";
      readonly key: string;
      readonly error: OncewardError;
      readonly delayMs: number;
    };

/** Emits a warning of the process for each problem; the default of `onDelivery`. */
export function warnOfTrouble(delivery: Delivery): void {
  if (delivery.kind === "processed" || delivery.kind === "duplicate") return;
  const { kind, key, error } = delivery;
  if (kind === "postponed" && error instanceof InProgressError) return;
  warn(`The message with the key ${JSON.stringify(key)} is ${kind}: ${error}`, "ONCEWARD_NOT_PROCESSED");
}
