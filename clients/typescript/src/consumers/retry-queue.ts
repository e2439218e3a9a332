import type { ConfirmChannel, ConsumeMessage } from "amqplib";

/**
 * Headers in which RabbitMQ describes a delivery. They are not part of a message that is sent again; CC would even
 * copy it to other queues.
 */
const OF_THE_DELIVERY = /^(CC|BCC|x-death|x-(first|last)-death-.+|x-(delivery|acquired)-count)$/;

/**
 * Declares queues from which messages return to the end of their own queue after a delay: that of the shortest delay at
 * once, the others when they are first needed. Returns a function that sends a message to the queue of the shortest delay
 * that is at least `atLeastMs`, or else of the longest: it resolves once the broker has the message, and rejects if the
 * broker does not take it, or the channel closes.
 *
 * No message is lost, by the quorum queue's at-least-once dead-lettering
 * (https://www.rabbitmq.com/docs/quorum-queues) and by publisher confirms. A crash in between makes two copies of a
 * message, of which one is a duplicate.
 *
 * @param delaysMs the delays, ascending.
 */
export async function openRetryQueues(
  channel: ConfirmChannel,
  queue: string,
  delaysMs: readonly [number, ...number[]],
): Promise<(message: ConsumeMessage, atLeastMs: number) => Promise<void>> {
  const declared = new Map<number, Promise<string>>();
  const queueOf = (delayMs: number) => {
    const known = declared.get(delayMs) ?? declareRetryQueue(channel, queue, delayMs);
    declared.set(delayMs, known);
    return known;
  };
  const send = createSender(channel);
  await queueOf(delaysMs[0]);
  return async (message, atLeastMs) => {
    const delayMs = delaysMs.find((ms) => ms >= atLeastMs) ?? delaysMs.at(-1) ?? delaysMs[0];
    await send(await queueOf(delayMs), message);
  };
}

/** Declares the queue of one delay, and returns its name. */
async function declareRetryQueue(channel: ConfirmChannel, queue: string, delayMs: number): Promise<string> {
  // A queue's arguments can't be changed, so each delay has a queue of its own.
  const retryQueue = `${queue}.retry-${delayMs}`;
  await channel.assertQueue(retryQueue, {
    messageTtl: delayMs,
    deadLetterExchange: "",
    deadLetterRoutingKey: queue,
    arguments: {
      "x-queue-type": "quorum",
      "x-dead-letter-strategy": "at-least-once",
      "x-overflow": "reject-publish",
    },
  });
  return retryQueue;
}

/** Returns a function that sends a message to a queue, and resolves once the broker has confirmed that the queue has it. */
function createSender(channel: ConfirmChannel): (queue: string, message: ConsumeMessage) => Promise<void> {
  /** The messages that the broker returned because no queue took them, for each queue. */
  const returned = new Map<string, number>();
  const returnedTo = (queue: string) => returned.get(queue) ?? 0;
  channel.on("return", ({ fields: { routingKey } }) => returned.set(routingKey, returnedTo(routingKey) + 1));
  return async (queue, { content, properties }) => {
    const returnedBefore = returnedTo(queue);
    // The broker refuses a user id that is not the connection's.
    const { userId, ...rest } = properties;
    const options = { ...rest, headers: withoutDelivery(properties.headers), mandatory: true };
    // amqplib calls back with an error, too, if the channel closes before the confirm.
    await new Promise<void>((resolve, reject) => {
      channel.sendToQueue(queue, content, options, (error) => (error ? reject(error) : resolve()));
    });
    // The broker returns a message that no queue took, and then confirms it.
    if (returnedTo(queue) > returnedBefore) throw new Error(`There is no queue ${queue}.`);
  };
}

function withoutDelivery(headers: Readonly<Record<string, unknown>> = {}) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_DELIVERY.test(name)));
}
