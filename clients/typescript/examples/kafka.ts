/**
 * `npm run example -- kafka`: a worker that charges orders from a topic of Kafka. The producer sends each order twice. The
 * first worker leaves after some orders, and another one continues after the last committed offset.
 */

import { createOnceward, newKey } from "@onceward/client";
import { consumeOnce, readJson, withKey } from "@onceward/client/kafka";
import { createTopic, type ExampleMessage } from "./kafka-setup.ts";
import { createShop, findService } from "./setup.ts";

const ORDERS = 30;

const shop = createShop(ORDERS);

const onceward = createOnceward(await findService());
const topic = await createTopic();

function startWorker() {
  const consumer = topic.join();
  const consuming = consumeOnce(
    onceward,
    consumer,
    {
      topics: [topic.name],
      namespace: "example-kafka",
      deadLetter: "skip",
      tooOld: "skip",
      redeliverAfterMs: 200,
      onDelivery: shop.onDelivery,
    },
    async (message: ExampleMessage) =>
      await shop.charge((readJson(message.value) as { orderId: string }).orderId),
  );
  return async () => {
    await consuming.close();
    await consumer.close();
  };
}

for (let order = 0; order < ORDERS; order++) {
  const orderId = newKey();
  // The key is made with the order, and is the same each time the order is sent.
  for (const _ of ["sent", "sent again"]) {
    await topic.send(withKey(orderId, { value: JSON.stringify({ orderId }) }));
  }
}

const stopFirst = startWorker();
await shop.untilSettled(ORDERS / 2);
await stopFirst();

const stopSecond = startWorker();
await shop.untilSettled(2 * ORDERS);
await stopSecond();

shop.prove();

await topic.close();
await onceward.close();
