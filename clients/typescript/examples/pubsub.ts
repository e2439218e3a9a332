/**
 * `npm run example -- pubsub`: a worker that charges orders from a subscription of Google Pub/Sub. The publisher sends each
 * order twice, and the provider is away for the first charges, so that Pub/Sub delivers these messages again, too.
 */

import { createOnceward, newKey } from "@onceward/client";
import { messageOnce, readJson, withKey } from "@onceward/client/pubsub";
import { createTopic, type ExampleMessage } from "./pubsub-setup.ts";
import { findService, prove } from "./setup.ts";

const ORDERS = 30;

const charges: string[] = [];
let failures = 5;
const provider = {
  async charge(orderId: string) {
    if (failures-- > 0) throw new Error("the provider is away");
    charges.push(orderId);
  },
};

const onceward = createOnceward(await findService());
const topic = await createTopic();

let duplicates = 0;
let settled = 0;
const done = Promise.withResolvers<void>();
const handle = messageOnce(
  onceward,
  {
    namespace: "example-pubsub",
    deadLetter: "skip",
    tooOld: "skip",
    redeliverAfterMs: 200,
    onDelivery({ kind }) {
      if (kind === "duplicate") duplicates++;
      if (kind === "duplicate" || kind === "processed") settled++;
      if (settled === 2 * ORDERS) done.resolve();
    },
  },
  async (message: ExampleMessage) =>
    await provider.charge((readJson(message.data) as { orderId: string }).orderId),
);
topic.listen((message) => void handle(message));

for (let order = 0; order < ORDERS; order++) {
  const orderId = newKey();
  // The key is made with the order, and is the same each time the order is published.
  for (const _ of ["published", "published again"]) {
    await topic.publish(withKey(orderId, { json: { orderId } }));
  }
}
await done.promise;

prove("charges were made", charges.length, ORDERS);
prove("different orders were charged", new Set(charges).size, ORDERS);
console.log(`${duplicates} of the messages were recognized as duplicates.`);

await topic.close();
await onceward.close();
