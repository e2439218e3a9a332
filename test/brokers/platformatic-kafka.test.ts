import { randomUUID } from "node:crypto";
import { TerminalError } from "@onceward/client";
import {
  Consumer,
  type Message,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";
import type { Admin } from "kafkajs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type ConsumeOptions, consumeOnce, withKey } from "../../clients/typescript/src/kafka.ts";
import { cutOff, type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { KEY_OF_2022 } from "../support/adapters/consumer-suite.ts";
import { type RunningKafka, startKafka } from "./kafka.ts";
import { BROKER_JARS } from "./programs.ts";

type Text = Message<string, string, string, string>;

const newGuard = useGuards();
const soon = { timeout: 30_000, interval: 50 };

describe.runIf(BROKER_JARS !== "")("A consumer of @platformatic/kafka", () => {
  let kafka: RunningKafka;
  let admin: Admin;
  let producer: Producer<string, string, string, string>;

  beforeAll(async () => {
    kafka = await startKafka();
    admin = kafka.kafka.admin();
    await admin.connect();
    const bootstrapBrokers = [kafka.broker];
    producer = new Producer({ clientId: "producer", bootstrapBrokers, serializers: stringSerializers });
  });

  afterAll(async () => {
    await producer?.close();
    await admin?.disconnect();
    await kafka?.stop();
  });

  /** A topic of a test's own, and ways to send to it and to see how far its group has come. */
  async function newTopic(numPartitions = 1) {
    const topic = `charges-${randomUUID()}`;
    const group = `${topic}-group`;
    const topics = [{ topic, numPartitions }, { topic: `${topic}.dead` }];
    await admin.createTopics({ topics, waitForLeaders: true });
    return {
      topic,
      group,
      send: (key: string, partition = 0) =>
        producer.send({ messages: [withKey(key, { topic, partition, value: "{}" })] }),
      /** Resolves with the sum of the committed offsets: the number of settled messages. */
      async committed() {
        const [offsets] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
        return (offsets?.partitions ?? []).reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
      },
    };
  }

  type Topic = Awaited<ReturnType<typeof newTopic>>;

  function consume(
    { onceward, options }: Pick<Guarded, "onceward" | "options">,
    { topic, group }: Topic,
    fn: (message: Text, key: string) => unknown,
    more: Partial<ConsumeOptions<Text>> = {},
  ) {
    const consumer = new Consumer({
      groupId: group,
      clientId: "consumer",
      bootstrapBrokers: [kafka.broker],
      deserializers: stringDeserializers,
      sessionTimeout: 2000,
      heartbeatInterval: 200,
    });
    const settings = {
      topics: [topic],
      deadLetter: "skip" as const,
      tooOld: "skip" as const,
      waitMs: 0,
      redeliverAfterMs: 100,
    };
    const consuming = consumeOnce(
      onceward,
      consumer,
      { ...options, ...settings, ...more },
      (message, claim) => fn(message, claim.key),
    );
    const close = async () => {
      await consuming.close();
      await consumer.close();
    };
    onTestFinished(close);
    return close;
  }

  test("a message that is sent twice is performed once, and both offsets are committed", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    const performed: string[] = [];
    consume(guard, topic, (_, key) => performed.push(key));
    for (let times = 0; times < 2; times++) await topic.send("order-1");
    await vi.waitFor(async () => expect(await topic.committed()).toBe(2), soon);
    expect(guard.kinds()).toEqual(["processed", "duplicate"]);
    expect(performed).toEqual(["order-1"]);
  });

  test("while another holder runs the operation, its offset and its partition's order stay", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    const complete = await guard.holdElsewhere("order-1");
    const performed: string[] = [];
    consume(guard, topic, (_, key) => performed.push(key));
    for (const key of ["order-0", "order-1", "order-2"]) await topic.send(key);
    await vi.waitFor(
      () => expect(guard.kinds().slice(0, 3)).toEqual(["processed", "postponed", "postponed"]),
      soon,
    );
    expect(await topic.committed()).toBe(1);
    await complete();
    await vi.waitFor(async () => expect(await topic.committed()).toBe(3), soon);
    expect(performed).toEqual(["order-0", "order-2"]);
  });

  test("an outage holds the messages up, and loses none of them", async () => {
    await using guard = await newGuard();
    const { onceward, heal } = await cutOff(guard);
    const topic = await newTopic();
    const performed: string[] = [];
    consume({ ...guard, onceward }, topic, (_, key) => performed.push(key));
    for (const key of ["order-0", "order-1"]) await topic.send(key);
    await vi.waitFor(() => expect(guard.kinds().length).toBeGreaterThan(2), soon);
    expect(await topic.committed()).toBe(0);
    heal();
    await vi.waitFor(async () => expect(await topic.committed()).toBe(2), soon);
    expect(performed).toEqual(["order-0", "order-1"]);
  });

  test("a hopeless message goes unchanged to the dead-letter topic, and its offset is committed", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    const deadTopic = `${topic.topic}.dead`;
    const deadLetter: ConsumeOptions<Text>["deadLetter"] = ({ key, value, headers }) =>
      producer.send({ messages: [{ topic: deadTopic, key, value, headers }] });
    const fail = () => {
      throw new TerminalError("card declined");
    };
    await guard.refuseLateKeys();
    consume(guard, topic, fail, { deadLetter, tooOld: deadLetter });
    await producer.send({ messages: [{ topic: topic.topic, value: "without a key" }] });
    await topic.send(KEY_OF_2022);
    await topic.send("order-1");
    await vi.waitFor(async () => expect(await topic.committed()).toBe(3), soon);
    expect(guard.kinds()).toEqual(["refused", "refused", "failed"]);
    const dead: string[] = [];
    consume(guard, { ...topic, topic: deadTopic, group: `${deadTopic}-group` }, () => {}, {
      key: ({ offset, value }) => `${value}-${offset}`,
      onDelivery: ({ key }) => dead.push(`${key}`),
    });
    await vi.waitFor(() => expect(dead).toEqual(["without a key-0", "{}-1", "{}-2"]), soon);
  });

  test("consumers that join and leave meanwhile lose no message and repeat no operation", async () => {
    await using guard = await newGuard();
    const topic = await newTopic(4);
    const performed: string[] = [];
    const run = async (_: Text, key: string) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      performed.push(key);
    };
    const keys = Array.from({ length: 120 }, (_, order) => `order-${order}`);
    const closeFirst = consume(guard, topic, run);
    for (const [index, key] of keys.entries()) await topic.send(key, index % 4);
    await vi.waitFor(() => expect(performed.length).toBeGreaterThan(8), soon);
    consume(guard, topic, run);
    await vi.waitFor(() => expect(performed.length).toBeGreaterThan(60), soon);
    await closeFirst();
    consume(guard, topic, run);
    await vi.waitFor(async () => expect(await topic.committed()).toBe(keys.length), soon);
    expect(performed.toSorted()).toEqual(keys.toSorted());
  });
});
