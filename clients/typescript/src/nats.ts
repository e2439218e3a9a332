import type { JsMsg } from "@nats-io/jetstream";
import { type ConcurrencyOptions, inTurns } from "./consumers/concurrency.ts";
import { createConclude, type DeadLetterOptions } from "./consumers/dead-letter.ts";
import { createEffectHandler } from "./consumers/handle.ts";
import { handleHeld } from "./consumers/hold-message.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { leaseLeftMs } from "./consumers/lease-left.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import { refusedField } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";

export type { ConcurrencyOptions } from "./consumers/concurrency.ts";
export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** A third of JetStream's default `ack_wait` of 30 s: two may be late before the message is delivered again. */
const DEFAULT_WORKING_INTERVAL_MS = 10_000;
/** An hour. A timer of Node fires at once beyond 24 days. */
const MAX_WORKING_INTERVAL_MS = 3_600_000;

/** {@link ConsumerOptions}, how a message is kept, and the destination of messages that no retry can help. */
export interface MessageOptions extends ConsumerOptions<JsMsg>, ConcurrencyOptions, DeadLetterOptions<JsMsg> {
  /**
   * How often JetStream is notified that a message is still being handled, in milliseconds: at most a third of the consumer's
   * `ack_wait`; from 1 to 3,600,000. Default: 10,000, for the default `ack_wait` of 30 s.
   */
  readonly workingIntervalMs?: number | undefined;
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
 * const settings = { durable_name: "worker", ack_policy: AckPolicy.Explicit, max_ack_pending: 100 };
 * await manager.consumers.add("CHARGES", settings);
 * const handle = messageOnce(
 *   onceward,
 *   {
 *     namespace: "charges",
 *     deadLetter: ({ data, headers }) => js.publish("dead.charges", data, headers ? { headers } : {}),
 *   },
 *   async (message, claim) => {
 *     const order = readJson(message.data);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * const consumer = await js.consumers.get("CHARGES", "worker");
 * await consumer.consume({ callback: (message) => void handle(message) });
 * ```
 *
 * - The key is the header `idempotency-key`. The function's value is not kept.
 * - A key that contains no time has the time at which the stream stored the message, which replays and mirrors keep. In a stream
 *   that sources another, and when its copy is published from a dead-letter stream, it has a later one.
 * - The message is acknowledged once the operation is settled: done now, or done before.
 * - At most `concurrency` messages are handled at the same time. The callback of `consume` is called for each message as it
 *   comes, and `max_messages` does not limit that: the others wait here, and JetStream is notified for them, too.
 * - While the message is handled, JetStream is notified every `workingIntervalMs`, so that a function may take longer than
 *   the consumer's `ack_wait`.
 * - While another holder runs the operation, the message is delivered again when the holder's lease ends, and at
 *   the earliest after `redeliverAfterMs`. If the record is ambiguous, it is delivered again after `redeliverAfterMs`; if
 *   the function throws, after a delay that doubles, until `maxAttempts` is reached.
 * - While the service is unreachable, the message is held and tried every `redeliverAfterMs`, so that an outage counts no
 *   deliveries. `onDelivery` is called for each attempt. Closing the client ends this.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request, a key that is too old), the
 *   message goes to `deadLetter` and is terminated, which JetStream publishes as an advisory. A stream that keeps messages
 *   by limits still has it.
 *
 * Required settings of the consumer:
 *
 * - `ack_policy` explicit, and `ack_wait` at least three times `workingIntervalMs`.
 * - `max_ack_pending`: how many messages all processes have at the same time, handled or waiting. JetStream's default is
 *   1,000: one process may then have them all, while others are idle. A small multiple of `concurrency` shares them.
 * - `max_deliver` unlimited, which is the default: JetStream delivers a message no more once it is reached, without an
 *   error, and without a dead letter. `maxAttempts` ends the attempts.
 *
 * If the connection closes while a message is handled, JetStream delivers it again, as a duplicate; that is not an error
 * here.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function messageOnce(
  onceward: Runner,
  options: MessageOptions,
  fn: (message: JsMsg, claim: Claim) => unknown,
): (message: JsMsg) => Promise<void> {
  const { workingIntervalMs = DEFAULT_WORKING_INTERVAL_MS } = options;
  if (!(workingIntervalMs >= 1 && workingIntervalMs <= MAX_WORKING_INTERVAL_MS)) {
    throw refusedField("workingIntervalMs", `must be 1-${MAX_WORKING_INTERVAL_MS} milliseconds`);
  }
  const handle = inTurns(
    options,
    createEffectHandler(
      onceward,
      withMessageTime(options, ({ time }: JsMsg) => time.getTime()),
      keyOf,
      fn,
    ),
  );
  const conclude = createConclude(options, ["skip"]);
  return async (message) => {
    const [delivery, verdict] = await handleHeld(
      () => handle(message),
      async (delivery) => [delivery, await conclude(message, delivery)] as const,
      async () => message.working(),
      // Notified again after every third.
      3 * workingIntervalMs,
    );
    switch (verdict.kind) {
      case "acknowledge":
        return message.ack();
      case "discard":
      case "reject":
        // Without a reason: servers before 2.10 ignore a termination that has one.
        return message.term();
      case "retry": {
        const leftMs = delivery.kind === "postponed" ? leaseLeftMs(delivery.error) : 0;
        return message.nak(Math.max(verdict.delayMs, leftMs));
      }
      default:
        return verdict satisfies never;
    }
  };
}

/**
 * Returns a copy of a publication's options whose headers also hold the operation's key; the headers that are passed
 * stay unchanged. For the producer.
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey<Options extends { readonly headers: MessageHeaders }>(
  key: string,
  options: Options,
): Options {
  const headers = copyOf(options.headers);
  headers.set(KEY_HEADER, checkedKey(key));
  return { ...options, headers };
}

/** The library's `headers()` is reached through the value, so that this module needs no part of it at run time. */
function copyOf(headers: MessageHeaders): MessageHeaders {
  const Headers = headers.constructor as new (code: number, description: string) => MessageHeaders;
  const copy = new Headers(headers.code, headers.description);
  for (const name of headers.keys()) for (const value of headers.values(name)) copy.append(name, value);
  return copy;
}

function keyOf({ headers }: JsMsg): string | undefined {
  const keys = headers?.values(KEY_HEADER) ?? [];
  if (keys.length > 1) throw new Error(`there are ${keys.length} ${KEY_HEADER} headers`);
  return keys[0];
}
