import type { RunOptions } from "../run/run-options.ts";
import type { Delivery } from "./delivery.ts";

/** How a consumer identifies its operations, and reports their outcomes. */
export interface ConsumerOptions<Message>
  extends Pick<RunOptions, "namespace" | "leaseMs" | "waitMs" | "timeoutMs" | "owner" | "classifyError"> {
  /**
   * Returns the operation's key, as its producer made it: never the delivery's id, which a repeat does not share
   * (using it warns once, as ONCEWARD_DELIVERY_ID_AS_KEY). If it returns undefined or throws, the message is refused.
   * Default: the key that `withKey` set.
   */
  readonly key?: ((message: Message) => string | undefined) | undefined;
  /**
   * Returns what the key belongs to, as in `run`: the same key with another fingerprint is refused. Default: not
   * compared.
   */
  readonly fingerprint?: ((message: Message) => unknown) | undefined;
  /** How long until a message that could not be handled yet is tried again, in milliseconds. Default: 5,000. */
  readonly redeliverAfterMs?: number | undefined;
  /**
   * Called with the outcome of every delivery, before the broker is told: for counting processed and duplicate
   * messages, and for logging. Must not throw. Default: problems are warnings of the process
   * (ONCEWARD_NOT_PROCESSED).
   */
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined;
}

/** Short enough for callers that wait for the outcome, long enough for a service that is down. */
export const DEFAULT_REDELIVER_AFTER_MS = 5000;
