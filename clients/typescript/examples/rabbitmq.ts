/**
 * `npm run example -- rabbitmq`: a worker that charges orders from a queue. The producer sends each order twice. The
 * first worker loses its connection before it has acknowledged a message, so that the broker delivers the messages
 * again, too.
 */

import { createOnceward, newKey } from "@onceward/client";
import { type Delivery, messageOnce, readJson, withKey } from "@onceward/client/rabbitmq";
import { connect } from "amqplib";
import { findRabbitMq } from "./rabbitmq-setup.ts";
import { createShop, findService } from "./setup.ts";

const ORDERS = 30;

const shop = createShop(ORDERS);

const onceward = createOnceward(await findService());
const broker = await findRabbitMq();
const queue = `example-orders-${crypto.randomUUID()}`;

async function startWorker(onDelivery: (delivery: Delivery) => void) {
  const connection = await connect(broker.url);
  const channel = await connection.createConfirmChannel();
  await channel.prefetch(10);
  const handle = await messageOnce(
    onceward,
    {
      channel,
      queue,
      namespace: "example-rabbitmq",
      deadLetter: "skip",
      tooOld: "skip",
      redeliverAfterMs: 200,
      onDelivery,
    },
    async (message) => await shop.charge((readJson(message.content) as { orderId: string }).orderId),
  );
  await channel.consume(queue, (message) => void (message && handle(message)));
  return connection;
}

const producer = await connect(broker.url);
const channel = await producer.createConfirmChannel();
await channel.assertQueue(queue, { durable: true });
for (let order = 0; order < ORDERS; order++) {
  const orderId = newKey();
  // The key is made with the order, and is the same each time the order is sent.
  for (const _ of ["sent", "sent again"]) {
    channel.sendToQueue(
      queue,
      Buffer.from(JSON.stringify({ orderId })),
      withKey(orderId, { persistent: true }),
    );
  }
}
await channel.waitForConfirms();

// `onDelivery` is called before the delivery is acknowledged.
const lost = Promise.withResolvers<void>();
const doomed = await startWorker(() => void doomed.close().then(lost.resolve, lost.resolve));
await lost.promise;

const worker = await startWorker(shop.onDelivery);
await shop.untilSettled(2 * ORDERS);
shop.prove();

await channel.deleteQueue(queue);
for (const connection of [worker, producer]) await connection.close();
await broker.stop();
await onceward.close();
