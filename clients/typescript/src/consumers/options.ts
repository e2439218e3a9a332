import type { RunOptions } from "../run/run-options.ts";
import type { Delivery } from "./delivery.ts";

/** How a consumer names its operations, and whom it tells what became of them. */
export interface ConsumerOptions<Message>
  extends Pick<RunOptions, "namespace" | "leaseMs" | "waitMs" | "timeoutMs" | "owner" | "classifyError"> {
  /**
   * The operation's key, as its producer made it: never the delivery's id, which a repeat does not share (using it warns,
   * once, as ONCEWARD_DELIVERY_ID_AS_KEY). Undefined or throwing: the message is refused. Default: what `withKey` sets.
   */
  readonly key?: ((message: Message) => string | undefined) | undefined;
  /** What the key stands for, as in `run`: the same key with another one is refused. Default: not compared. */
  readonly fingerprint?: ((message: Message) => unknown) | undefined;
  /** After how long a message that could not be handled yet is tried again. Default: 5,000. */
  readonly redeliverAfterMs?: number | undefined;
  /**
   * Told of every delivery as soon as its fate is known and before the broker is told: the place to count processed and
   * duplicate apart, and to log. Must not throw. Default: what went wrong is a warning of the process
   * (ONCEWARD_NOT_PROCESSED).
   */
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined;
}

/** Soon enough for whoever waits for the outcome, seldom enough for a service that is away. */
export const DEFAULT_REDELIVER_AFTER_MS = 5000;
