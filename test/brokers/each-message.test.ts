import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { TerminalError } from "@onceward/client";
import type { Admin, Producer } from "kafkajs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { deadLetterTo, eachMessageOnce, withKey } from "../../clients/typescript/src/kafkajs.ts";
import { eventually, type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { KEY_OF_2022 } from "../support/adapters/consumer-suite.ts";
import { usePackedClient } from "../support/packages/packed-client.ts";
import type { ConfluentWorkerLine, ConfluentWorkerSettings } from "./confluent-worker.ts";
import { type RunningKafka, readDeadLetters, startKafka } from "./kafka.ts";
import { BROKER_JARS, buildConfluentIfPossible } from "./programs.ts";

const confluent = BROKER_JARS === "" ? undefined : await buildConfluentIfPossible();

describe.runIf(BROKER_JARS !== "")("eachMessage of Apache Kafka", () => {
  const newGuard = useGuards();
  const packed = confluent && usePackedClient();
  let kafka: RunningKafka;
  let admin: Admin;
  let producer: Producer;
  let worker: string;

  beforeAll(async () => {
    kafka = await startKafka();
    admin = kafka.kafka.admin();
    producer = kafka.kafka.producer();
    await admin.connect();
    await producer.connect();
  });

  /** The worker's Node may be too old for types. */
  beforeAll(async () => {
    if (packed === undefined || confluent === undefined) return;
    const { project } = packed();
    await mkdir(join(project, "node_modules/@confluentinc"));
    await symlink(confluent.directory, join(project, "node_modules/@confluentinc/kafka-javascript"));
    const source = await readFile(fileURLToPath(new URL("confluent-worker.ts", import.meta.url)), "utf8");
    worker = join(project, "worker.js");
    await writeFile(worker, stripTypeScriptTypes(source));
  });

  afterAll(async () => {
    await producer?.disconnect();
    await admin?.disconnect();
    await kafka?.stop();
  });

  /** A topic of a test's own, with one partition, and ways to send to it and to see how far a group has come. */
  async function newTopic() {
    const topic = `charges-${randomUUID()}`;
    const deadTopic = `${topic}.dead`;
    await admin.createTopics({ topics: [{ topic }, { topic: deadTopic }], waitForLeaders: true });
    return {
      topic,
      deadTopic,
      send: (key: string, value = "{}") => producer.send({ topic, messages: [withKey(key, { value })] }),
      async committedBy(group: string) {
        const [offsets] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
        return offsets?.partitions[0]?.offset;
      },
    };
  }

  type Topic = Awaited<ReturnType<typeof newTopic>>;
  /** Starts a consumer, which fails permanently for a message whose value is `declined`. */
  type Start = (
    guard: Guarded,
    topic: Topic,
    group: string,
  ) => Promise<{
    /** The kinds of its deliveries so far. */
    kinds(): string[];
    /** The key and the value of each message whose function has run. */
    performed(): string[][];
  }>;

  const startKafkaJs: Start = async ({ onceward }, { topic, deadTopic }, group) => {
    const consumer = kafka.kafka.consumer({ groupId: group });
    onTestFinished(() => consumer.disconnect());
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    const kinds: string[] = [];
    const performed: string[][] = [];
    const settings = {
      namespace: "charges",
      deadLetter: deadLetterTo(producer, deadTopic),
      waitMs: 0,
      redeliverAfterMs: 200,
      onDelivery: ({ kind }: { kind: string }) => kinds.push(kind),
    };
    const eachMessage = eachMessageOnce(onceward, settings, ({ message: { value } }, { key }) => {
      if (`${value}` === "declined") throw new TerminalError("card declined");
      performed.push([key, `${value}`]);
    });
    await consumer.run({ eachMessage });
    return { kinds: () => kinds, performed: () => performed };
  };

  const startConfluent: Start = async ({ address, tenant }, { topic, deadTopic }, group) => {
    const settings: ConfluentWorkerSettings = {
      ...{ broker: kafka.broker, group, topic, deadTopic },
      ...{ address, apiKey: tenant.apiKey },
    };
    const child = spawn(confluent?.node ?? "", [worker, JSON.stringify(settings)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    onTestFinished(async () => {
      child.stdin.end();
      await exited;
    });
    const lines: ConfluentWorkerLine[] = [];
    createInterface(child.stdout).on("line", (line) => lines.push(JSON.parse(line)));
    return {
      kinds: () => lines.flatMap((line) => ("delivery" in line ? [line.delivery] : [])),
      performed: () => lines.flatMap((line) => ("performed" in line ? [[line.performed, line.value]] : [])),
    };
  };

  describe.each([
    ["KafkaJS", startKafkaJs],
    ...(confluent === undefined ? [] : [["@confluentinc/kafka-javascript", startConfluent] as const]),
  ] as const)("by %s", (_, start) => {
    test("a message that is sent twice, or delivered again to another group, is performed once", async () => {
      await using guard = await newGuard();
      const topic = await newTopic();
      const first = await start(guard, topic, `${topic.topic}-billing`);
      for (let times = 0; times < 2; times++) await topic.send("order-1", '{"amount":100}');
      await eventually(() => expect(first.kinds()).toEqual(["processed", "duplicate"]));
      await eventually(async () => expect(await topic.committedBy(`${topic.topic}-billing`)).toBe("2"));
      const second = await start(guard, topic, `${topic.topic}-reset`);
      await eventually(() => expect(second.kinds()).toEqual(["duplicate", "duplicate"]));
      expect([first.performed(), second.performed()]).toEqual([[["order-1", '{"amount":100}']], []]);
    });

    test("while another holder runs the operation, offset and order of its partition stay", async () => {
      await using guard = await newGuard();
      const topic = await newTopic();
      const group = `${topic.topic}-held`;
      const complete = await guard.holdElsewhere("order-1");
      const { kinds, performed } = await start(guard, topic, group);
      for (const key of ["order-0", "order-1", "order-2"]) await topic.send(key);
      await eventually(() => expect(kinds()).toEqual(["processed", "postponed", "postponed"]));
      expect(await topic.committedBy(group)).toBe("1");
      await complete();
      await eventually(() => expect(kinds().slice(-2)).toEqual(["duplicate", "processed"]));
      expect(performed().map(([key]) => key)).toEqual(["order-0", "order-2"]);
      await eventually(async () => expect(await topic.committedBy(group)).toBe("3"));
    });

    test("a message that no retry can help goes to the dead-letter topic, and its offset moves on", async () => {
      await using guard = await newGuard();
      const topic = await newTopic();
      const group = `${topic.topic}-declined`;
      await guard.refuseLateKeys();
      const { kinds, performed } = await start(guard, topic, group);
      await producer.send({ topic: topic.topic, messages: [{ value: "without a key" }] });
      await topic.send(KEY_OF_2022, "too old");
      await topic.send("order-1", "declined");
      await eventually(async () => expect(await topic.committedBy(group)).toBe("3"));
      const dead = await readDeadLetters(kafka.kafka, topic.deadTopic);
      await eventually(() => expect(dead).toHaveLength(3));
      expect(dead).toEqual([
        ["without a key", "The message has no operation key."],
        ["too old", expect.stringContaining("older than its retention")],
        ["declined", "card declined"],
      ]);
      expect([kinds(), performed()]).toEqual([["refused", "refused", "failed"], []]);
    });
  });
});
