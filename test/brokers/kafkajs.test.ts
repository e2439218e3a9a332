import { randomUUID } from "node:crypto";
import { TerminalError } from "@onceward/client";
import type { Kafka, Producer } from "kafkajs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { deadLetterTo, eachMessageOnce, readJson, withKey } from "../../clients/typescript/src/kafkajs.ts";
import { type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { KEY_OF_2022 } from "../support/adapters/consumer-suite.ts";
import { readDeadLetters, startKafka } from "./kafka.ts";
import { BROKER_JARS } from "./programs.ts";

const newGuard = useGuards();

describe.runIf(BROKER_JARS !== "")("A consumer of Apache Kafka", () => {
  let kafka: Kafka;
  let producer: Producer;
  let stop: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    ({ kafka, stop } = await startKafka());
    producer = kafka.producer({ allowAutoTopicCreation: true });
    await producer.connect();
  });

  afterAll(async () => {
    await producer?.disconnect();
    await stop?.();
  });

  /** A topic of a test's own, with one partition, and ways to send to it and to see how far its group has come. */
  async function newTopic() {
    const topic = `charges-${randomUUID()}`;
    const group = `${topic}-group`;
    const admin = kafka.admin();
    await admin.connect();
    onTestFinished(() => admin.disconnect());
    await admin.createTopics({ topics: [{ topic }, { topic: `${topic}.dead` }], waitForLeaders: true });
    return {
      topic,
      group,
      send: (key: string, value = "{}") => producer.send({ topic, messages: [withKey(key, { value })] }),
      async committed() {
        const [offsets] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
        return offsets?.partitions[0]?.offset;
      },
    };
  }

  async function consume(
    { onceward, options }: Guarded,
    { topic, group }: { topic: string; group: string },
    fn: Parameters<typeof eachMessageOnce>[2],
  ) {
    const consumer = kafka.consumer({ groupId: group });
    onTestFinished(() => consumer.disconnect());
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    const deadLetter = deadLetterTo(producer, `${topic}.dead`);
    const settings = { ...options, deadLetter, waitMs: 0, redeliverAfterMs: 100 };
    await consumer.run({ eachMessage: eachMessageOnce(onceward, settings, fn) });
    return consumer;
  }

  const soon = { timeout: 30_000 };

  test("a message that is sent twice, or delivered again after a reset, is performed once", async () => {
    await using guard = await newGuard();
    const { topic, group, send, committed } = await newTopic();
    const orders: unknown[] = [];
    const charge = ({ message }: { message: { value: Buffer | null } }) =>
      orders.push(readJson(message.value));
    await consume(guard, { topic, group }, charge);
    for (let times = 0; times < 2; times++) await send("order-1", '{"amount":100}');
    await vi.waitFor(() => expect(guard.kinds()).toEqual(["processed", "duplicate"]), soon);
    await vi.waitFor(async () => expect(await committed()).toBe("2"), soon);
    await consume(guard, { topic, group: `${group}-reset` }, charge);
    await vi.waitFor(() => expect(guard.kinds().slice(2)).toEqual(["duplicate", "duplicate"]), soon);
    expect(orders).toEqual([{ amount: 100 }]);
  });

  test("while another holder runs the operation, offset and order of its partition stay", async () => {
    await using guard = await newGuard();
    const { topic, group, send, committed } = await newTopic();
    const complete = await guard.holdElsewhere("order-1");
    const performed: string[] = [];
    await consume(guard, { topic, group }, (_, claim) => performed.push(claim.key));
    for (const key of ["order-0", "order-1", "order-2"]) await send(key);
    await vi.waitFor(() => expect(guard.kinds()).toEqual(["processed", "postponed", "postponed"]), soon);
    expect(await committed()).toBe("1");
    await complete();
    await vi.waitFor(() => expect(guard.kinds().slice(-2)).toEqual(["duplicate", "processed"]), soon);
    expect(performed).toEqual(["order-0", "order-2"]);
    await vi.waitFor(async () => expect(await committed()).toBe("3"), soon);
  });

  test("a message that no retry can help goes to the dead-letter topic, and its offset moves on", async () => {
    await using guard = await newGuard();
    await guard.refuseLateKeys();
    const { topic, group, send, committed } = await newTopic();
    await consume(guard, { topic, group }, () => {
      throw new TerminalError("card declined");
    });
    await producer.send({ topic, messages: [{ value: "without a key" }] });
    await send(KEY_OF_2022, "too old");
    await send("order-1", "declined");
    await vi.waitFor(async () => expect(await committed()).toBe("3"), soon);
    const dead = await readDeadLetters(kafka, `${topic}.dead`);
    await vi.waitFor(() => expect(dead).toHaveLength(3), soon);
    expect(dead).toEqual([
      ["without a key", "The message has no operation key."],
      ["too old", expect.stringContaining("older than its retention")],
      ["declined", "card declined"],
    ]);
    expect(guard.kinds()).toEqual(["refused", "refused", "failed"]);
  });
});
