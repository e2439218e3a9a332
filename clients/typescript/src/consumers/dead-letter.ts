import { OncewardError } from "../errors/errors.ts";
import { refusedField } from "../errors/violations.ts";
import { warn } from "../run/events.ts";
import type { Delivery } from "./delivery.ts";
import { type ConsumerOptions, redeliveryOf } from "./options.ts";

/**
 * The destination of messages that no retry can help. There is no default: whether such a message may be dropped is a
 * decision of its consumer.
 */
export interface DeadLetterOptions<Message, Elsewhere extends "skip" | "broker" = "skip"> {
  /**
   * Where a message goes whose operation failed permanently (a TerminalError, or an error on the last of `maxAttempts`), or
   * that can't be claimed (no key, the key of another request, a key that is too old). The broker forgets it afterwards.
   *
   * - A function sends it to a dead-letter queue, for example. If it throws, a warning says so (ONCEWARD_DEAD_LETTER), and the
   *   message is tried again after `redeliverAfterMs`. It may get a message twice, after a crash.
   * - `"broker"`, for brokers that have dead-letter queues of their own: the broker moves it there, by its own settings.
   * - `"skip"`: nowhere. The failure is in Onceward's record and in `onDelivery`. A message whose key is too old
   *   (KeyTooOldError) is not skipped, because there is no record that says whether its operation happened: it is tried again
   *   after `redeliverAfterMs`, with a warning (ONCEWARD_LATE_MESSAGE), until it has another destination. Use a function or `"broker"` where the policy refuses late keys.
   */
  readonly deadLetter: ((message: Message, error: Error) => unknown) | Elsewhere;
}

const TOO_OLD_TO_SKIP =
  'A message whose key is too old stays at the broker, and holds its Kafka partition: set deadLetter to a function, or to "broker".';

/**
 * What the broker is answered about a message:
 *
 * - `acknowledge`: its operation is done, now or before.
 * - `discard`: no retry can help, and it is dead-lettered or skipped.
 * - `reject`: no retry can help, and the broker dead-letters it.
 * - `retry`: it has to be delivered again.
 */
export type Verdict =
  | { readonly kind: "acknowledge" | "discard" | "reject" }
  | ({ readonly kind: "retry" } & Retry);

/** Why a message has to be tried again, and when. */
export interface Retry {
  readonly error: unknown;
  readonly delayMs: number;
}

/**
 * Returns a function that dead-letters a message if no retry can help, and resolves with what the broker is answered. It never
 * rejects.
 *
 * @param names the destinations of the broker that are not functions.
 * @throws InvalidRequestError for an invalid option.
 */
export function createConclude<Message>(
  options: ConsumerOptions<Message> & DeadLetterOptions<Message, "skip" | "broker">,
  names: readonly ("skip" | "broker")[],
): (message: Message, delivery: Delivery) => Promise<Verdict> {
  const { deadLetter } = options;
  const { redeliverAfterMs } = redeliveryOf(options);
  if (typeof deadLetter !== "function" && !names.includes(deadLetter)) {
    const choices = names.map((name) => ` or "${name}"`).join("");
    throw refusedField("deadLetter", `must be a function${choices}, is ${JSON.stringify(deadLetter)}`);
  }

  async function giveUp(message: Message, error: Error): Promise<Verdict> {
    if (deadLetter === "broker") return { kind: "reject" };
    if (deadLetter === "skip" && isTooOld(error)) {
      warn(TOO_OLD_TO_SKIP, "ONCEWARD_LATE_MESSAGE");
      return { kind: "retry", error, delayMs: redeliverAfterMs };
    }
    try {
      if (deadLetter !== "skip") await deadLetter(message, error);
    } catch (cause) {
      warn(`The message can't be dead-lettered: ${cause}`, "ONCEWARD_DEAD_LETTER");
      return { kind: "retry", error: cause, delayMs: redeliverAfterMs };
    }
    return { kind: "discard" };
  }

  return async (message, delivery) => {
    switch (delivery.kind) {
      case "processed":
        return { kind: "acknowledge" };
      case "duplicate":
      case "failed":
      case "refused":
        if (delivery.error === undefined) return { kind: "acknowledge" };
        return await giveUp(message, delivery.error);
      case "released":
      case "postponed":
        return { kind: "retry", error: delivery.error, delayMs: delivery.delayMs };
      default:
        return delivery satisfies never;
    }
  };
}

/** Nothing else knows of such a message: dropping it could lose an operation that never happened. */
function isTooOld(error: Error): boolean {
  return error instanceof OncewardError && error.reason === "KEY_TOO_OLD";
}
