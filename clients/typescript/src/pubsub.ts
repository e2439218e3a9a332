import { type ConcurrencyOptions, inTurns } from "./consumers/concurrency.ts";
import { createConclude, type DeadLetterOptions } from "./consumers/dead-letter.ts";
import type { Delivery } from "./consumers/delivery.ts";
import { createEffectHandler } from "./consumers/handle.ts";
import { inOrder } from "./consumers/in-order.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import type { ConsumerOptions } from "./consumers/options.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { sleep } from "./run/retry.ts";

export type { ConcurrencyOptions } from "./consumers/concurrency.ts";
export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** The part of a message of `@google-cloud/pubsub` that the adapter uses. */
export interface PubSubMessage {
  readonly id: string;
  readonly ackId: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly orderingKey?: string | null | undefined;
  /** When the topic got the message. */
  readonly publishTime: Date;
  ack(): void;
  nack(): void;
}

/** How a message of a subscription is handled. Dead letters of the subscription itself are messages delivered too often. */
export interface MessageOptions<Message>
  extends ConsumerOptions<Message>,
    ConcurrencyOptions,
    DeadLetterOptions<Message> {}

/**
 * Returns a function that handles a message of a Google Pub/Sub subscription so that its operation happens once, however
 * often Pub/Sub or the producer delivers it.
 *
 * ```ts
 * await topic.publishMessage(withKey(order.id, { json: order }));
 *
 * const handle = messageOnce(
 *   onceward,
 *   { namespace: "charges", deadLetter: ({ data, attributes }) => dead.publishMessage({ data, attributes }) },
 *   async (message: Message, claim) => {
 *     const order = readJson(message.data);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * subscription.on("message", (message) => void handle(message));
 * ```
 *
 * - The key is the attribute `idempotency-key`. The function's value is not kept.
 * - A key that contains no time has the message's `publishTime`, which a seek keeps. A message that the subscription forwards
 *   to its dead-letter topic, or that is published again from there, has a later one.
 * - The message is acknowledged once the operation is settled: done now, done before, or failed permanently.
 * - While another holder runs the operation, the service is unreachable or the record is ambiguous, the message is kept
 *   and tried every `redeliverAfterMs`, so that no delivery attempt is counted. The package extends its acknowledgement
 *   deadline in the meantime, and delivers no more than `flowControl.maxMessages` at once. Closing the client returns
 *   the kept messages.
 * - At most `concurrency` messages are handled at the same time; the others that the package delivers wait here, and it
 *   extends their deadline, too.
 * - Messages with the same ordering key are handled one after the other: the package itself calls the listener for all of
 *   them at once. If one is returned, those after it are returned, too, so that they stay in order.
 * - If the function throws, the message is returned after a delay that doubles, until `maxAttempts` is reached. Each return
 *   counts a delivery attempt.
 *
 * Required settings of the subscriber: `maxExtensionTime` (60 minutes by default) longer than the function's longest run
 * and the longest outage. A message that is kept for longer is delivered again, as a duplicate.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options.
 */
export function messageOnce<Message extends PubSubMessage>(
  onceward: Runner,
  options: MessageOptions<Message>,
  fn: (message: Message, claim: Claim) => unknown,
): (message: Message) => Promise<void> {
  const conclude = createConclude(options, ["skip"]);
  const handle = inTurns(
    options,
    createEffectHandler(
      onceward,
      withMessageTime(options, ({ publishTime }: Message) => publishTime.getTime()),
      keyOf,
      fn,
    ),
  );

  /** Resolves with whether the message was acknowledged. */
  async function handleAndAnswer(message: Message): Promise<boolean> {
    const delivery = await handleKept(() => handle(message));
    const verdict = await conclude(message, delivery);
    if (verdict.kind !== "retry") {
      message.ack();
      return true;
    }
    // The client is closed: another process can have the message at once.
    if (delivery.kind !== "postponed") await sleep(verdict.delayMs);
    message.nack();
    return false;
  }

  return inOrder(handleAndAnswer, (message) => message.nack());
}

/** Handles a message until its outcome is known or the client is closed. */
async function handleKept(handle: () => Promise<Delivery>): Promise<Delivery> {
  let delivery = await handle();
  while (delivery.kind === "postponed" && delivery.error.reason !== "CLOSED") {
    await sleep(delivery.delayMs);
    delivery = await handle();
  }
  return delivery;
}

/**
 * Returns a message to publish with its operation's key. For the producer.
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey<M extends object>(
  key: string,
  message: M & { readonly attributes?: Readonly<Record<string, string>> | null | undefined },
): M & { readonly attributes: Record<string, string> } {
  return { ...message, attributes: { ...message.attributes, [KEY_HEADER]: checkedKey(key) } };
}

function keyOf({ attributes }: PubSubMessage): string | undefined {
  return attributes[KEY_HEADER];
}
