import { randomUUID } from "node:crypto";
import { PubSub } from "@google-cloud/pubsub";
import type { PubSubMessage } from "@onceward/client/pubsub";

/** A message as the package delivers it. */
export type ExampleMessage = PubSubMessage & { readonly data: Buffer };

/** A topic with one subscription, whose listener gets each message until it is acknowledged. */
export interface ExampleTopic {
  publish(message: { readonly json: object; readonly attributes: Record<string, string> }): Promise<unknown>;
  listen(listener: (message: ExampleMessage) => void): void;
  close(): Promise<unknown>;
}

/** Creates a topic at `PUBSUB_EMULATOR_HOST`, or else one in memory. */
export async function createTopic(): Promise<ExampleTopic> {
  const { PUBSUB_EMULATOR_HOST } = process.env;
  if (!PUBSUB_EMULATOR_HOST) {
    console.log("PUBSUB_EMULATOR_HOST is not set: a topic in memory takes the place of Google Pub/Sub.");
    return topicInMemory();
  }
  console.log(`Using Google Pub/Sub at ${PUBSUB_EMULATOR_HOST}.`);
  const client = new PubSub({ projectId: "example" });
  const [topic] = await client.createTopic(`example-orders-${randomUUID()}`);
  const [subscription] = await topic.createSubscription(`example-worker-${randomUUID()}`);
  return {
    publish: (message) => topic.publishMessage(message),
    listen: (listener) => void subscription.on("message", listener),
    async close() {
      await subscription.close();
      await client.close();
    },
  };
}

/** Delivers a message again that is returned. It has no acknowledgement deadlines. */
function topicInMemory(): ExampleTopic {
  let listener: Parameters<ExampleTopic["listen"]>[0] = () => {};
  let published = 0;
  return {
    async publish({ json, attributes }) {
      const id = `${++published}`;
      const publishTime = new Date();
      const deliver = () =>
        setImmediate(() =>
          listener({
            id,
            ackId: randomUUID(),
            attributes,
            publishTime,
            data: Buffer.from(JSON.stringify(json)),
            ack() {},
            nack: deliver,
          }),
        );
      deliver();
    },
    listen(added) {
      listener = added;
    },
    async close() {},
  };
}
