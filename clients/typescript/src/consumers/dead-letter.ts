import { OncewardError } from "../errors/errors.ts";
import { classOf } from "../errors/mapping.ts";
import { refusedField } from "../errors/violations.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import { endedWithin } from "../run/client.ts";
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
   * - A function sends it to a dead-letter queue, for example. If it throws or takes longer than 60 s, a warning says so
   *   (ONCEWARD_DEAD_LETTER), and the message is tried again after `redeliverAfterMs`. It may get a message twice, after a crash.
   * - `"broker"`, for brokers that have dead-letter queues of their own: the broker moves it there, by its own settings.
   * - `"skip"`: nowhere. The failure is in Onceward's record and in `onDelivery`.
   */
  readonly deadLetter: Destination<Message, Elsewhere>;
  /**
   * Where a message goes whose key is too old, which happens only where the policy refuses late keys. No record
   * says whether its operation happened, so to skip it is a decision of its own: required with `deadLetter: "skip"`.
   * Default: `deadLetter`.
   */
  readonly tooOld?: Destination<Message, Elsewhere> | undefined;
}

/**
 * A message that is being dead-lettered counts among those that are in flight, and holds up its partition in Kafka. Twice the
 * 30 s that clients of brokers give a request by default.
 */
const DEAD_LETTER_TIMEOUT_MS = 60_000;

/** A function that sends a message elsewhere, or what the adapter does with it. */
type Destination<Message, Elsewhere> = ((message: Message, error: Error) => unknown) | Elsewhere;

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
  const { deadLetter, tooOld = deadLetter } = options;
  const { redeliverAfterMs } = redeliveryOf(options);
  checkDestination("deadLetter", deadLetter, names);
  checkDestination("tooOld", tooOld, names);
  if (deadLetter === "skip" && options.tooOld === undefined) throw refusedField("tooOld", SKIP_IS_NOT_ENOUGH);

  async function giveUp(message: Message, error: Error): Promise<Verdict> {
    const destination = isTooOld(error) ? tooOld : deadLetter;
    if (destination === "broker") return { kind: "reject" };
    if (destination === "skip") return { kind: "discard" };
    const sendAway = async () => await destination(message, error);
    try {
      if (!(await endedWithin(sendAway(), DEAD_LETTER_TIMEOUT_MS)))
        throw new Error(`it takes longer than ${DEAD_LETTER_TIMEOUT_MS / 1000} s`);
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

function checkDestination(field: string, destination: unknown, names: readonly string[]): void {
  if (typeof destination === "function" || names.includes(destination as string)) return;
  const choices = names.map((name) => ` or "${name}"`).join("");
  throw refusedField(field, `must be a function${choices}, is ${JSON.stringify(destination)}`);
}

const SKIP_IS_NOT_ENOUGH =
  'must be set with deadLetter "skip": no record says whether the operation of a message that is too old happened';

function isTooOld(error: Error): boolean {
  return error instanceof OncewardError && classOf(error) === ReasonClass.TOO_OLD;
}
