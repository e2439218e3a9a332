import type { ConfirmChannel, ConsumeMessage } from "amqplib";

/**
 * What RabbitMQ says of a delivery, in headers: no part of a message that is sent anew. CC would even send it to others.
 */
const OF_THE_DELIVERY = /^(CC|BCC|x-death|x-(first|last)-death-.+|x-(delivery|acquired)-count)$/;

/**
 * Declares a queue in which messages lie for a while before they come back to the end of theirs, and returns what sends
 * one there: it resolves once the broker has it, and rejects if it has not.
 *
 * Nothing is lost on the way: by a quorum queue's at-least-once dead-lettering (https://www.rabbitmq.com/docs/quorum-queues)
 * and by publisher confirms. A crash in between makes two of a message, of which one is a duplicate.
 */
export async function openRetryQueue(
  channel: ConfirmChannel,
  queue: string,
  delayMs: number,
): Promise<(message: ConsumeMessage) => Promise<void>> {
  // A queue's arguments can't be changed; another delay is another queue.
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

  let returned = 0;
  channel.on("return", ({ fields }) => {
    if (fields.routingKey === retryQueue) returned++;
  });

  return ({ content, properties }) =>
    new Promise((resolve, reject) => {
      const returnedBefore = returned;
      // The broker takes no other user's id than the connection's.
      const { userId, ...rest } = properties;
      const options = { ...rest, headers: withoutDelivery(properties.headers), mandatory: true };
      channel.sendToQueue(retryQueue, content, options, (error) => {
        if (error) reject(error);
        // A message that no queue took is returned, and confirmed after that.
        else if (returned > returnedBefore) reject(new Error(`There is no queue ${retryQueue}.`));
        else resolve();
      });
    });
}

function withoutDelivery(headers: Readonly<Record<string, unknown>> = {}) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_DELIVERY.test(name)));
}
