/**
 * `npm run example -- nats`: a worker that charges orders from a JetStream stream. The producer sends each order twice. The
 * first worker loses its connection before it has acknowledged a message, so that JetStream delivers the messages
 * again, too.
 */

import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { createOnceward, newKey } from "@onceward/client";
import { type Delivery, messageOnce, readJson, withKey } from "@onceward/client/nats";
import { findNats } from "./nats-setup.ts";
import { createShop, findService } from "./setup.ts";

const ORDERS = 30;
const ACK_WAIT_MS = 1000;

const shop = createShop(ORDERS);

const onceward = createOnceward(await findService());
const broker = await findNats();
const stream = `example-orders-${crypto.randomUUID()}`;

async function startWorker(onDelivery: (delivery: Delivery) => void) {
  const connection = await connect({ servers: broker.address });
  const handle = messageOnce(
    onceward,
    {
      namespace: "example-nats",
      deadLetter: "skip",
      tooOld: "skip",
      // A duplicate waits for the charge of its order, instead of for the end of its lease, 30 s.
      waitMs: ACK_WAIT_MS,
      redeliverAfterMs: 200,
      workingIntervalMs: ACK_WAIT_MS / 3,
      onDelivery,
    },
    async (message) => await shop.charge((readJson(message.data) as { orderId: string }).orderId),
  );
  const consumer = await jetstream(connection).consumers.get(stream, "worker");
  await consumer.consume({ callback: (message) => void handle(message) });
  return connection;
}

const producer = await connect({ servers: broker.address });
const manager = await jetstreamManager(producer);
await manager.streams.add({ name: stream, subjects: [stream] });
// At most ten messages are with all workers together.
const ack = { ack_policy: AckPolicy.Explicit, ack_wait: ACK_WAIT_MS * 1_000_000, max_ack_pending: 10 };
await manager.consumers.add(stream, { durable_name: "worker", ...ack });

const js = jetstream(producer);
for (let order = 0; order < ORDERS; order++) {
  const orderId = newKey();
  // The key is made with the order, and is the same each time the order is sent.
  for (const _ of ["sent", "sent again"]) {
    await js.publish(stream, JSON.stringify({ orderId }), withKey(orderId, { headers: headers() }));
  }
}

// `onDelivery` is called before the delivery is acknowledged.
const lost = Promise.withResolvers<void>();
const doomed = await startWorker(() => void doomed.close().then(lost.resolve, lost.resolve));
await lost.promise;

const worker = await startWorker(shop.onDelivery);
await shop.untilSettled(2 * ORDERS);
shop.prove();

await manager.streams.delete(stream);
for (const connection of [worker, producer]) await connection.close();
await broker.stop();
await onceward.close();
