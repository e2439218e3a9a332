import type { ConfirmChannel, ConsumeMessage, Options } from "amqplib";
import { type ConcurrencyOptions, inTurns } from "./consumers/concurrency.ts";
import { createConclude, type DeadLetterOptions } from "./consumers/dead-letter.ts";
import { createEffectHandler } from "./consumers/handle.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { withMessageTime } from "./consumers/message-time.ts";
import { type ConsumerOptions, redeliveryOf } from "./consumers/options.ts";
import { openRetryQueues } from "./consumers/retry-queue.ts";
import type { Claim } from "./run/claim.ts";
import { endedWithin, type Runner } from "./run/client.ts";
import { warn } from "./run/events.ts";

export type { ConcurrencyOptions } from "./consumers/concurrency.ts";
export type { DeadLetterOptions } from "./consumers/dead-letter.ts";
export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/**
 * How a message of a queue is handled. With `deadLetter: "broker"` a message that no retry can help is rejected, and goes to
 * the queue's dead-letter exchange; RabbitMQ drops it if the queue has none.
 */
export interface MessageOptions
  extends ConsumerOptions<ConsumeMessage>,
    ConcurrencyOptions,
    DeadLetterOptions<ConsumeMessage, "skip" | "broker"> {
  /** The consumer's channel, in confirm mode: a message is acknowledged after its copy in the retry queue is confirmed. */
  readonly channel: ConfirmChannel;
  /** The name of the consumed queue. */
  readonly queue: string;
}

/**
 * A quorum queue without its majority confirms nothing, and the channel stays open: without a limit, messages would stay
 * unacknowledged until the prefetch count lets no other come. A confirm takes milliseconds.
 */
const CONFIRM_TIMEOUT_MS = 30_000;

/**
 * Returns a function that handles a consumed message so that its operation happens once, however often RabbitMQ or
 * the producer delivers it.
 *
 * ```ts
 * channel.sendToQueue("charges", Buffer.from(JSON.stringify(order)), withKey(order.id, { persistent: true }));
 *
 * const channel = await connection.createConfirmChannel();
 * await channel.assertQueue("charges.dead"); // RabbitMQ silently drops dead letters for a queue that does not exist.
 * await channel.assertQueue("charges", { deadLetterExchange: "", deadLetterRoutingKey: "charges.dead" });
 * await channel.prefetch(10);
 * const handle = await messageOnce(
 *   onceward,
 *   { channel, queue: "charges", namespace: "charges", deadLetter: "broker" },
 *   async (message, claim) => {
 *     const order = readJson(message.content);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * await channel.consume("charges", (message) => (message === null ? cancelled() : handle(message)));
 * ```
 *
 * - The key is the header `idempotency-key`. The function's value is not kept.
 * - A key that contains no time has the property `timestamp`, in seconds or milliseconds, if the producer sets it: dead-letter
 *   exchanges and retry queues keep it. A broker that overwrites it (`set_header_timestamp.overwrite`), and a producer that
 *   sends the operation again, give it a later one.
 * - The message is acknowledged once the operation is settled: done now, or done before.
 * - At most `concurrency` messages are handled at the same time; the others wait here. Without a prefetch count, RabbitMQ
 *   sends the whole queue to one consumer.
 * - If another holder runs the operation, the service is unreachable or the record is ambiguous, the message goes through
 *   a retry queue and comes back after `redeliverAfterMs`; if the function throws, after a delay that doubles, until
 *   `maxAttempts` is reached. Each delay has its queue `<queue>.retry-<ms>`, which is declared here when it is first
 *   needed: a quorum queue that dead-letters at least once (RabbitMQ 3.10 or later), through the default exchange.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request, a key that is too old), the
 *   message goes to `deadLetter`: `"broker"` is the queue's dead-letter exchange.
 *
 * If the retry queue takes no message, or the broker does not confirm it within 30 s, a warning says so
 * (ONCEWARD_RETRY_QUEUE), and the message returns to its queue at once. If the channel closes in the meantime, the message
 * is delivered again, as a duplicate; that is not an error here.
 *
 * @throws OncewardError INVALID_REQUEST for invalid options; the channel's error of the declaration.
 */
export async function messageOnce(
  onceward: Runner,
  options: MessageOptions,
  fn: (message: ConsumeMessage, claim: Claim) => unknown,
): Promise<(message: ConsumeMessage) => Promise<void>> {
  const { channel, queue } = options;
  const handle = inTurns(
    options,
    createEffectHandler(onceward, withMessageTime(options, timeMsOf), keyOf, fn),
  );
  const conclude = createConclude(options, ["skip", "broker"]);
  const sendLater = await openRetryQueues(channel, queue, redeliveryOf(options).backoffMs);

  async function handleAndAnswer(message: ConsumeMessage): Promise<void> {
    const verdict = await conclude(message, await handle(message));
    switch (verdict.kind) {
      case "acknowledge":
      case "discard":
        return channel.ack(message);
      case "reject":
        return channel.nack(message, false, false);
      case "retry":
        return await comeBackAfter(verdict.delayMs, message);
      default:
        return verdict satisfies never;
    }
  }

  async function comeBackAfter(delayMs: number, message: ConsumeMessage): Promise<void> {
    try {
      if (!(await endedWithin(sendLater(message, delayMs), CONFIRM_TIMEOUT_MS)))
        throw new Error(`The broker has not confirmed a message within ${CONFIRM_TIMEOUT_MS / 1000} s.`);
    } catch (error) {
      // Without the retry queue the message comes back without a delay, but is not lost. If the queue has it after all, one of
      // both is a duplicate.
      channel.nack(message);
      warn(`${error}`, "ONCEWARD_RETRY_QUEUE");
      return;
    }
    channel.ack(message);
  }

  return async (message) => {
    try {
      await handleAndAnswer(message);
    } catch (error) {
      // The channel has reported this to its owner. The broker delivers unacknowledged messages again.
      if (!(error instanceof Error && error.name === "IllegalOperationError")) throw error;
    }
  };
}

/**
 * Returns the options of a publication with its operation's key. For the producer.
 *
 * @throws OncewardError INVALID_REQUEST for an invalid key.
 */
export function withKey(key: string, options: Options.Publish = {}): Options.Publish {
  return { ...options, headers: { ...options.headers, [KEY_HEADER]: checkedKey(key) } };
}

function keyOf({ properties }: ConsumeMessage): string | undefined {
  return properties.headers?.[KEY_HEADER];
}

/** Later than any time in seconds, and earlier than any in milliseconds since 1974. */
const FIRST_MS = 2 ** 37;

/** AMQP's timestamps are in seconds; a producer that sets `Date.now()` writes milliseconds. */
function timeMsOf({ properties }: ConsumeMessage): number {
  const timestamp = Number(properties.timestamp);
  return timestamp < FIRST_MS ? timestamp * 1000 : timestamp;
}
