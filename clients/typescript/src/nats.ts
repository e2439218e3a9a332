import type { JsMsg } from "@nats-io/jetstream";
import type { Delivery } from "./consumers/delivery.ts";
import { createHandler } from "./consumers/handle.ts";
import { handleHeld } from "./consumers/hold-message.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { leaseLeftMs } from "./consumers/lease-left.ts";
import { type ConsumerOptions, DEFAULT_REDELIVER_AFTER_MS } from "./consumers/options.ts";
import { checkFunction, refusedField } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { warn } from "./run/events.ts";

export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** A third of JetStream's default `ack_wait` of 30 s: two may be late before the message is delivered again. */
const DEFAULT_WORKING_INTERVAL_MS = 10_000;
/** An hour. A timer of Node fires at once beyond 24 days. */
const MAX_WORKING_INTERVAL_MS = 3_600_000;

/** {@link ConsumerOptions}, how a message is kept, and the destination of messages that no retry can help. */
export interface MessageOptions extends ConsumerOptions<JsMsg> {
  /**
   * How often JetStream is told that a message is still being handled, in milliseconds: at most a third of the consumer's
   * `ack_wait`; from 1 to 3,600,000. Default: 10,000, for the default `ack_wait` of 30 s.
   */
  readonly workingIntervalMs?: number | undefined;
  /**
   * Takes a message whose operation failed permanently, or that can't be claimed (no key, the key of another request);
   * the message is terminated afterwards. Often publishes to another subject. If it throws, the message is delivered again
   * after `redeliverAfterMs`. May get a message twice, after a crash. Default: the message is terminated, which
   * JetStream publishes as an advisory; a stream that keeps messages by limits still has it.
   */
  readonly deadLetter?: ((message: JsMsg, error: Error) => Promise<unknown>) | undefined;
}

/** The headers of a message, as `headers()` of `@nats-io/transport-node` makes them. */
export type MessageHeaders = NonNullable<JsMsg["headers"]>;

/**
 * Returns a function that handles a message of a JetStream consumer so that its operation happens once, however often
 * JetStream or the producer delivers it.
 *
 * ```ts
 * const js = jetstream(connection);
 * await js.publish("charges", JSON.stringify(order), withKey(order.id, { headers: headers() }));
 *
 * const handle = messageOnce(onceward, { namespace: "charges" }, async (message, claim) => {
 *   const order = readJson(message.data);
 *   await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 * });
 * const consumer = await js.consumers.get("CHARGES", "worker");
 * await consumer.consume({ max_messages: 10, callback: (message) => void handle(message) });
 * ```
 *
 * - The key is the header `idempotency-key`. The function's value is not kept.
 * - The message is acknowledged once the operation is settled: done now, or done before.
 * - While the message is handled, JetStream is told so every `workingIntervalMs`, so that a function may take longer than
 *   the consumer's `ack_wait`.
 * - While another holder runs the operation, the message is delivered again when the holder's lease ends, and at
 *   the earliest after `redeliverAfterMs`. If the function throws or the record is ambiguous, it is delivered again
 *   after `redeliverAfterMs`.
 * - While the service is unreachable, the message is held and tried every `redeliverAfterMs`, so that an outage counts no
 *   deliveries. `onDelivery` is called for each attempt. Closing the client ends this.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request), the
 *   message goes to `deadLetter` and is terminated.
 *
 * Required settings of the consumer:
 *
 * - `ack_policy` explicit, and `ack_wait` at least three times `workingIntervalMs`.
 * - `max_deliver` unlimited, which is the default: JetStream delivers a message no more once it is reached, without an
 *   error. To give up after some attempts, throw a TerminalError once `claim.attempt` is high.
 * - `max_messages` of `consume` small: the `ack_wait` of messages that wait in the client's buffer passes. Such a
 *   message is delivered again, as a duplicate.
 *
 * If the connection closes while a message is handled, JetStream delivers it again, as a duplicate; that is not an error
 * here. If `deadLetter` throws, a warning says so (ONCEWARD_DEAD_LETTER).
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function messageOnce(
  onceward: Runner,
  options: MessageOptions,
  fn: (message: JsMsg, claim: Claim) => unknown,
): (message: JsMsg) => Promise<void> {
  checkFunction("fn", fn);
  const { workingIntervalMs = DEFAULT_WORKING_INTERVAL_MS } = options;
  if (!(workingIntervalMs >= 1 && workingIntervalMs <= MAX_WORKING_INTERVAL_MS)) {
    throw refusedField("workingIntervalMs", `must be 1-${MAX_WORKING_INTERVAL_MS} milliseconds`);
  }
  const handle = createHandler(
    onceward,
    options,
    { keyOf, deliveryIdsOf },
    async (message, claim) => void (await fn(message, claim)),
  );
  return async (message) => {
    const working = setInterval(() => message.working(), workingIntervalMs);
    try {
      const delivery = await handleHeld(
        () => handle(message),
        async () => message.working(),
        3 * workingIntervalMs,
      );
      await settle(message, delivery, options);
    } finally {
      clearInterval(working);
    }
  };
}

async function settle(message: JsMsg, delivery: Delivery, options: MessageOptions): Promise<void> {
  const { redeliverAfterMs = DEFAULT_REDELIVER_AFTER_MS, deadLetter } = options;
  switch (delivery.kind) {
    case "processed":
      return message.ack();
    case "duplicate":
    case "failed":
    case "refused":
      if (delivery.error === undefined) return message.ack();
      try {
        await deadLetter?.(message, delivery.error);
      } catch (error) {
        warn(`The message can't be dead-lettered: ${error}`, "ONCEWARD_DEAD_LETTER");
        return message.nak(redeliverAfterMs);
      }
      // Without a reason: servers before 2.10 ignore a termination that has one.
      return message.term();
    case "released":
      return message.nak(redeliverAfterMs);
    case "postponed":
      return message.nak(Math.max(delivery.delayMs, leaseLeftMs(delivery.error)));
    default:
      return delivery satisfies never;
  }
}

/**
 * Adds the operation's key to the headers of a publication's options, and returns the options. For the producer.
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey<Options extends { readonly headers: MessageHeaders }>(
  key: string,
  options: Options,
): Options {
  options.headers.set(KEY_HEADER, checkedKey(key));
  return options;
}

function keyOf({ headers }: JsMsg): string | undefined {
  const keys = headers?.values(KEY_HEADER) ?? [];
  if (keys.length > 1) throw new Error(`there are ${keys.length} ${KEY_HEADER} headers`);
  return keys[0];
}

function deliveryIdsOf({ seq, info }: JsMsg) {
  return [`${seq}`, `${info.stream}:${seq}`, `${info.stream}.${seq}`, `${info.deliverySequence}`];
}
