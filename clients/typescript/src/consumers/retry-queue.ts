import type { ConfirmChannel, ConsumeMessage } from "amqplib";

/**
 * Headers in which RabbitMQ describes a delivery. They are not part of a message that is sent again; CC would even
 * copy it to other queues.
 */
const OF_THE_DELIVERY = /^(CC|BCC|x-death|x-(first|last)-death-.+|x-(delivery|acquired)-count)$/;

/**
 * Declares a queue from which messages return to the end of their own queue after a delay. Returns a function that
 * sends a message there: it resolves once the broker has the message, and rejects if the broker does not take it.
 *
 * No message is lost, by the quorum queue's at-least-once dead-lettering
 * (https://www.rabbitmq.com/docs/quorum-queues) and by publisher confirms. A crash in between makes two copies of a
 * message, of which one is a duplicate.
 */
export async function openRetryQueue(
  channel: ConfirmChannel,
  queue: string,
  delayMs: number,
): Promise<(message: ConsumeMessage) => Promise<void>> {
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

  let returned = 0;
  channel.on("return", ({ fields }) => {
    if (fields.routingKey === retryQueue) returned++;
  });

  return ({ content, properties }) =>
    new Promise((resolve, reject) => {
      const returnedBefore = returned;
      // The broker refuses a user id that is not the connection's.
      const { userId, ...rest } = properties;
      const options = { ...rest, headers: withoutDelivery(properties.headers), mandatory: true };
      channel.sendToQueue(retryQueue, content, options, (error) => {
        if (error) reject(error);
        // The broker returns a message that no queue took, and then confirms it.
        else if (returned > returnedBefore) reject(new Error(`There is no queue ${retryQueue}.`));
        else resolve();
      });
    });
}

function withoutDelivery(headers: Readonly<Record<string, unknown>> = {}) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_DELIVERY.test(name)));
}
