import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Admin, Producer } from "kafkajs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { withKey } from "../../clients/typescript/src/kafkajs.ts";
import { eventually, type Guarded, useGuards } from "../adapters/consumers/fixtures.ts";
import { KEY_OF_2022 } from "../support/adapters/consumer-suite.ts";
import { usePackedClient } from "../support/packages/packed-client.ts";
import type { ConfluentWorkerLine, ConfluentWorkerSettings } from "./confluent-worker.ts";
import { type RunningKafka, readDeadLetters, startKafka } from "./kafka.ts";
import { BROKER_JARS, buildConfluentIfPossible } from "./programs.ts";

const confluent = BROKER_JARS === "" ? undefined : await buildConfluentIfPossible();

describe.runIf(confluent !== undefined)("A consumer of @confluentinc/kafka-javascript", () => {
  const { node, directory } = confluent ?? { node: "", directory: "" };
  const newGuard = useGuards();
  const packed = usePackedClient();
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
    const { project } = packed();
    await mkdir(join(project, "node_modules/@confluentinc"));
    await symlink(directory, join(project, "node_modules/@confluentinc/kafka-javascript"));
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

  function startWorker({ address, tenant }: Guarded, { topic, deadTopic }: Topic, group: string) {
    const settings: ConfluentWorkerSettings = {
      ...{ broker: kafka.broker, group, topic, deadTopic },
      ...{ address, apiKey: tenant.apiKey },
    };
    const child = spawn(node, [worker, JSON.stringify(settings)], { stdio: ["pipe", "pipe", "inherit"] });
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
  }

  type Topic = Awaited<ReturnType<typeof newTopic>>;

  test("a message that is sent twice, or delivered again to another group, is performed once", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    const first = startWorker(guard, topic, "billing");
    for (let times = 0; times < 2; times++) await topic.send("order-1", '{"amount":100}');
    await eventually(() => expect(first.kinds()).toEqual(["processed", "duplicate"]));
    await eventually(async () => expect(await topic.committedBy("billing")).toBe("2"));
    const second = startWorker(guard, topic, "billing-reset");
    await eventually(() => expect(second.kinds()).toEqual(["duplicate", "duplicate"]));
    expect([first.performed(), second.performed()]).toEqual([[["order-1", '{"amount":100}']], []]);
  });

  test("while another holder runs the operation, offset and order of its partition stay", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    const complete = await guard.holdElsewhere("order-1");
    const { kinds, performed } = startWorker(guard, topic, "held");
    for (const key of ["order-0", "order-1", "order-2"]) await topic.send(key);
    await eventually(() => expect(kinds()).toEqual(["processed", "postponed", "postponed"]));
    expect(await topic.committedBy("held")).toBe("1");
    await complete();
    await eventually(() => expect(kinds().slice(-2)).toEqual(["duplicate", "processed"]));
    expect(performed().map(([key]) => key)).toEqual(["order-0", "order-2"]);
    await eventually(async () => expect(await topic.committedBy("held")).toBe("3"));
  });

  test("a message that no retry can help goes to the dead-letter topic, and its offset moves on", async () => {
    await using guard = await newGuard();
    const topic = await newTopic();
    await guard.refuseLateKeys();
    const { kinds, performed } = startWorker(guard, topic, "declined");
    await producer.send({ topic: topic.topic, messages: [{ value: "without a key" }] });
    await topic.send(KEY_OF_2022, "too old");
    await topic.send("order-1", "declined");
    await eventually(async () => expect(await topic.committedBy("declined")).toBe("3"));
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
