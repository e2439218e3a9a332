/**
 * `npm run example -- kafka`: a worker that charges orders from a topic of Kafka. The producer sends each order twice. The
 * first worker leaves after some orders, and another one continues after the last committed offset.
 */

import { createOnceward, newKey } from "@onceward/client";
import { consumeOnce, readJson, withKey } from "@onceward/client/kafka";
import { createTopic, type ExampleMessage } from "./kafka-setup.ts";
import { findService, prove } from "./setup.ts";

const ORDERS = 30;

const charges: string[] = [];
const provider = {
  async charge(orderId: string) {
    charges.push(orderId);
  },
};

const onceward = createOnceward(await findService());
const topic = await createTopic();

function startWorker(onSettled: (kind: string) => void) {
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
      onDelivery: ({ kind }) => onSettled(kind),
    },
    async (message: ExampleMessage) =>
      await provider.charge((readJson(message.value) as { orderId: string }).orderId),
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

let duplicates = 0;
let settled = 0;
const begun = Promise.withResolvers<void>();
const done = Promise.withResolvers<void>();
const count = (kind: string) => {
  if (kind === "duplicate") duplicates++;
  if (kind === "duplicate" || kind === "processed") settled++;
  if (settled >= ORDERS / 2) begun.resolve();
  if (settled >= 2 * ORDERS) done.resolve();
};
const stopFirst = startWorker(count);
await begun.promise;
await stopFirst();

const stopSecond = startWorker(count);
await done.promise;
await stopSecond();

prove("charges were made", charges.length, ORDERS);
prove("different orders were charged", new Set(charges).size, ORDERS);
console.log(`${duplicates} of the messages were recognized as duplicates.`);

await topic.close();
await onceward.close();
