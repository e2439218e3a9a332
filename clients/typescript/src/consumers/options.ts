import { checkWholeNumber } from "../errors/violations.ts";
import type { ResolveFor } from "../run/resolution.ts";
import type { RunOptions } from "../run/run-options.ts";
import type { Delivery } from "./delivery.ts";

/** How a consumer identifies its operations, tries them again, and reports their outcomes. */
export interface ConsumerOptions<Message>
  extends Pick<
    RunOptions,
    "namespace" | "leaseMs" | "waitMs" | "timeoutMs" | "owner" | "classifyError" | "onError" | "marksBegin"
  > {
  /**
   * `at-most-once`: the record exists before the function runs, as in `run`. A message whose function threw has failed, and is not
   * tried again. Default: at least once, with one effect.
   */
  readonly mode?: RunOptions["mode"];
  /**
   * Returns the operation's key, as its producer made it, such as an order's number. Never the id of the delivery, such as
   * a message's id or offset: if the producer sends the operation again, it has another one, and the operation runs again.
   * If it returns undefined or throws, the message is refused. Default: the key that `withKey` set.
   */
  readonly key?: ((message: Message) => string | undefined) | undefined;
  /**
   * Returns what the key belongs to, as in `run`: the same key with another fingerprint is refused. If it throws, the
   * message is refused. Default: not compared.
   */
  readonly fingerprint?: ((message: Message) => unknown) | undefined;
  /**
   * Returns when the operation's key was made, as `RunOptions.keyCreatedAt` describes it. Not called for a key that is a UUID of
   * version 1, 6 or 7, or a ULID: these contain their time. If it throws, the message is refused. Default: the message's own
   * time, where the adapter has one.
   */
  readonly keyCreatedAt?: ((message: Message) => Date | undefined) | undefined;
  /** Finds out what became of an earlier attempt, as `RunOptions.resolve` describes it. Default: none. */
  readonly resolve?: ResolveFor<Message> | undefined;
  /**
   * After how many attempts the operation fails permanently: 1 to 1,000,000, or Infinity for never. An attempt is a claim
   * of the key that was granted (`claim.attempt`), also to a process that then died. An error of the function on the last
   * attempt is stored as a TerminalError is. If the last attempt ended without an outcome, the next one stores a
   * TerminalError, and does not call the function. Default: 20, which take about 70 minutes with the default delays.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * How long until a message that could not be handled yet is tried again, in milliseconds, 1 to 86,400,000 (a day). After
   * an error of the function, doubled for each attempt before, up to `maxRedeliverAfterMs`. Default: 5,000.
   */
  readonly redeliverAfterMs?: number | undefined;
  /**
   * The longest time until a message whose function threw is tried again, in milliseconds, 1 to 86,400,000 (a day).
   * Default: 300,000 (5 minutes), or `redeliverAfterMs` if that is longer.
   */
  readonly maxRedeliverAfterMs?: number | undefined;
  /**
   * Called with the outcome of every delivery, before the broker is answered: for counting processed and duplicate
   * messages, and for logging. An error that it throws, or rejects with, becomes a warning of the process
   * (ONCEWARD_HOOK_FAILED), and changes nothing for the message. Default: problems are warnings of the process
   * (ONCEWARD_NOT_PROCESSED).
   */
  readonly onDelivery?: ((delivery: Delivery) => void) | undefined;
}

/** Short enough for callers that wait for the outcome, long enough for a service that is down. */
const DEFAULT_REDELIVER_AFTER_MS = 5000;
/** Rare enough for a provider that is down for an hour, and soon enough after it is back. */
const DEFAULT_MAX_REDELIVER_AFTER_MS = 300_000;
/** A day. A timer of Node fires at once beyond 24 days. */
const MAX_REDELIVER_AFTER_MS = 86_400_000;
/** With the default delays about 70 minutes: longer than most outages of a provider. */
const DEFAULT_MAX_ATTEMPTS = 20;
const MAX_MAX_ATTEMPTS = 1_000_000;

/** When a message is tried again, and how often. */
export interface Redelivery {
  /** Until the next try after anything but an error of the function. */
  readonly redeliverAfterMs: number;
  /** Delays after the first, second, … error of the function, each twice the one before; the last one repeats. */
  readonly backoffMs: readonly [number, ...number[]];
  readonly maxAttempts: number;
}

/** Returns when messages are tried again, and how often. @throws InvalidRequestError for an invalid option. */
export function redeliveryOf(
  options: Pick<ConsumerOptions<never>, "mode" | "redeliverAfterMs" | "maxRedeliverAfterMs" | "maxAttempts">,
): Redelivery {
  const { redeliverAfterMs = DEFAULT_REDELIVER_AFTER_MS, mode } = options;
  const { maxAttempts = DEFAULT_MAX_ATTEMPTS } = mode === "at-most-once" ? { maxAttempts: 1 } : options;
  checkWholeNumber("redeliverAfterMs", redeliverAfterMs, 1, MAX_REDELIVER_AFTER_MS);
  const { maxRedeliverAfterMs = Math.max(DEFAULT_MAX_REDELIVER_AFTER_MS, redeliverAfterMs) } = options;
  checkWholeNumber("maxRedeliverAfterMs", maxRedeliverAfterMs, redeliverAfterMs, MAX_REDELIVER_AFTER_MS);
  if (maxAttempts !== Number.POSITIVE_INFINITY) {
    checkWholeNumber("maxAttempts", maxAttempts, 1, MAX_MAX_ATTEMPTS);
  }
  const backoffMs: [number, ...number[]] = [redeliverAfterMs];
  for (let delayMs = redeliverAfterMs; delayMs < maxRedeliverAfterMs; ) {
    delayMs = Math.min(2 * delayMs, maxRedeliverAfterMs);
    backoffMs.push(delayMs);
  }
  return { redeliverAfterMs, backoffMs, maxAttempts };
}

/** Returns how long until a message is tried again whose function threw on this attempt. */
export function backoffAfter({ backoffMs }: Redelivery, attempt: number): number {
  return backoffMs[Math.min(attempt, backoffMs.length) - 1] ?? backoffMs[0];
}

/** Returns a delay that the service asked for, within what a timer can wait. */
export function boundedDelayMs(delayMs: number): number {
  return Math.min(delayMs, MAX_REDELIVER_AFTER_MS);
}
