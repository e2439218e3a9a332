import type { StreamConsumer, StreamMessage } from "@onceward/client/kafka";
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

/** A message with a body. */
export type ExampleMessage = StreamMessage & { readonly value: string };

/** A consumer of the topic's one group. */
export interface ExampleConsumer extends StreamConsumer<ExampleMessage> {
  close(): Promise<void>;
}

/** A topic of one partition with a group of consumers. */
export interface ExampleTopic {
  readonly name: string;
  send(message: { readonly value: string; readonly headers: Record<string, string> }): Promise<unknown>;
  join(): ExampleConsumer;
  close(): Promise<void>;
}

/** Creates a topic at `KAFKA_BOOTSTRAP_SERVERS`, or else one in memory. */
export async function createTopic(): Promise<ExampleTopic> {
  const { KAFKA_BOOTSTRAP_SERVERS } = process.env;
  const name = `example-orders-${crypto.randomUUID()}`;
  if (!KAFKA_BOOTSTRAP_SERVERS) {
    console.log("KAFKA_BOOTSTRAP_SERVERS is not set: a topic in memory takes the place of Kafka.");
    return topicInMemory(name);
  }
  console.log(`Using Kafka at ${KAFKA_BOOTSTRAP_SERVERS}.`);
  const settings = { clientId: "example", bootstrapBrokers: KAFKA_BOOTSTRAP_SERVERS.split(",") };
  const admin = new Admin(settings);
  await admin.createTopics({ topics: [name], partitions: 1 });
  const producer = new Producer({ ...settings, serializers: stringSerializers });
  return {
    name,
    send: (message) => producer.send({ messages: [{ ...message, topic: name }] }),
    join: () => new Consumer({ ...settings, groupId: name, deserializers: stringDeserializers }),
    async close() {
      await producer.close();
      await admin.close();
    },
  };
}

/** Delivers the messages after the committed offset to each consumer that joins. It has no rebalances. */
function topicInMemory(name: string): ExampleTopic {
  const log: ExampleMessage[] = [];
  let committed = 0n;
  const join = (): ExampleConsumer => {
    const ended = Promise.withResolvers<void>();
    let closed = false;
    async function* read() {
      for (const message of log.slice(Number(committed))) {
        if (closed) return;
        yield message;
      }
      await ended.promise;
    }
    const close = async () => {
      closed = true;
      ended.resolve();
    };
    return {
      assignments: [{ topic: name, partitions: [0] }],
      closed: false,
      consume: async () => ({ [Symbol.asyncIterator]: read, close }),
      close,
    };
  };
  return {
    name,
    async send({ value, headers }) {
      const offset = BigInt(log.length);
      const commit = () => {
        committed = offset + 1n;
      };
      const timestamp = BigInt(Date.now());
      const message = { topic: name, partition: 0, offset, timestamp };
      log.push({ ...message, headers: new Map(Object.entries(headers)), value, commit });
    },
    join,
    async close() {},
  };
}
