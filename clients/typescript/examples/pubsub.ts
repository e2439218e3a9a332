/**
 * `npm run example -- pubsub`: a worker that charges orders from a subscription of Google Pub/Sub. The publisher sends each
 * order twice, and the provider is unreachable for the first charges, so that Pub/Sub delivers these messages again, too.
 */

import { createOnceward, newKey } from "@onceward/client";
import { messageOnce, readJson, withKey } from "@onceward/client/pubsub";
import { createTopic, type ExampleMessage } from "./pubsub-setup.ts";
import { createShop, findService } from "./setup.ts";

const ORDERS = 30;

const shop = createShop(ORDERS);
let failures = 5;
async function charge(orderId: string): Promise<void> {
  if (failures-- > 0) throw new Error("the provider is unreachable");
  await shop.charge(orderId);
}

const onceward = createOnceward(await findService());
const topic = await createTopic();

const handle = messageOnce(
  onceward,
  {
    namespace: "example-pubsub",
    deadLetter: "skip",
    tooOld: "skip",
    redeliverAfterMs: 200,
    onDelivery: shop.onDelivery,
  },
  async (message: ExampleMessage) => await charge((readJson(message.data) as { orderId: string }).orderId),
);
topic.listen((message) => void handle(message));

for (let order = 0; order < ORDERS; order++) {
  const orderId = newKey();
  // The key is made with the order, and is the same each time the order is published.
  for (const _ of ["published", "published again"]) {
    await topic.publish(withKey(orderId, { json: { orderId } }));
  }
}
await shop.untilSettled(2 * ORDERS);

shop.prove();

await topic.close();
await onceward.close();
