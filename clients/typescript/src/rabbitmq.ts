import type { ConfirmChannel, ConsumeMessage, Options } from "amqplib";
import { createHandler } from "./consumers/handle.ts";
import { checkedKey, KEY_HEADER } from "./consumers/key.ts";
import { type ConsumerOptions, DEFAULT_REDELIVER_AFTER_MS } from "./consumers/options.ts";
import { openRetryQueue } from "./consumers/retry-queue.ts";
import { checkFunction } from "./errors/violations.ts";
import type { Claim } from "./run/claim.ts";
import type { Runner } from "./run/client.ts";
import { warn } from "./run/events.ts";

export type { Delivery } from "./consumers/delivery.ts";
export { KEY_HEADER } from "./consumers/key.ts";
export type { ConsumerOptions } from "./consumers/options.ts";
export { readJson } from "./consumers/read-json.ts";

/** {@link ConsumerOptions}, and the consumed queue. */
export interface MessageOptions extends ConsumerOptions<ConsumeMessage> {
  /** The name of the consumed queue. */
  readonly queue: string;
}

/**
 * Returns a function that handles a consumed message so that its operation happens once, however often RabbitMQ or
 * the producer delivers it.
 *
 * ```ts
 * channel.sendToQueue("charges", Buffer.from(JSON.stringify(order)), withKey(order.id, { persistent: true }));
 *
 * const channel = await connection.createConfirmChannel();
 * await channel.assertQueue("charges", { deadLetterExchange: "", deadLetterRoutingKey: "charges.dead" });
 * await channel.prefetch(10);
 * const handle = await messageOnce(
 *   onceward,
 *   channel,
 *   { queue: "charges", namespace: "charges" },
 *   async (message, claim) => {
 *     const order = readJson(message.content);
 *     await provider.charge(order, { idempotencyKey: claim.deriveKey("provider") });
 *   },
 * );
 * await channel.consume("charges", (message) => (message === null ? cancelled() : handle(message)));
 * ```
 *
 * - The key is the header `idempotency-key`. The function's value is not kept.
 * - The message is acknowledged once the operation is settled: done now, or done before.
 * - If the function throws, another holder runs the operation, the service is unreachable or the record is ambiguous,
 *   the message goes through a retry queue and comes back after `redeliverAfterMs`. The retry queue
 *   `<queue>.retry-<ms>` is declared here: a quorum queue that dead-letters at least once (RabbitMQ 3.10 or later),
 *   through the default exchange. To give up after some attempts, throw a TerminalError once `claim.attempt` is high.
 * - If the operation failed permanently, or the message can't be claimed (no key, the key of another request), the
 *   message is rejected, so that it goes to the queue's dead-letter exchange. If there is none, RabbitMQ drops it.
 *
 * If the retry queue takes no message, a warning says so (ONCEWARD_RETRY_QUEUE), and the message returns to its queue
 * at once. If the channel closes in the meantime, the message is delivered again, as a duplicate; that is not an
 * error here.
 *
 * @param channel in confirm mode: a message is acknowledged after its copy in the retry queue is confirmed.
 * @throws OncewardError INVALID_REQUEST for invalid options; the channel's error of the declaration.
 */
export async function messageOnce(
  onceward: Runner,
  channel: ConfirmChannel,
  options: MessageOptions,
  fn: (message: ConsumeMessage, claim: Claim) => unknown,
): Promise<(message: ConsumeMessage) => Promise<void>> {
  checkFunction("fn", fn);
  const { queue, redeliverAfterMs = DEFAULT_REDELIVER_AFTER_MS } = options;
  const handle = createHandler(
    onceward,
    options,
    { keyOf, deliveryIdsOf },
    async (message, claim) => void (await fn(message, claim)),
  );
  const sendLater = await openRetryQueue(channel, queue, redeliverAfterMs);

  async function settle(message: ConsumeMessage): Promise<void> {
    const delivery = await handle(message);
    switch (delivery.kind) {
      case "processed":
        return channel.ack(message);
      case "duplicate":
      case "failed":
      case "refused":
        return delivery.error === undefined ? channel.ack(message) : channel.nack(message, false, false);
      case "released":
      case "postponed":
        return await comeBackLater(message);
      default:
        return delivery satisfies never;
    }
  }

  async function comeBackLater(message: ConsumeMessage): Promise<void> {
    try {
      await sendLater(message);
    } catch (error) {
      // Without the retry queue the message comes back without a delay, but is not lost.
      channel.nack(message);
      warn(`${error}`, "ONCEWARD_RETRY_QUEUE");
      return;
    }
    channel.ack(message);
  }

  return async (message) => {
    try {
      await settle(message);
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

function deliveryIdsOf({ fields: { deliveryTag, consumerTag } }: ConsumeMessage) {
  return [`${deliveryTag}`, consumerTag];
}
