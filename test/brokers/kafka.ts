import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Kafka, logLevel } from "kafkajs";
import { onTestFinished } from "vitest";
import { freePort } from "../support/redis/redis.ts";
import { startJava } from "./java.ts";
import { BROKER_JARS } from "./programs.ts";

const run = promisify(execFile);

/** A Kafka of its own for a test file. */
export interface RunningKafka {
  /** `127.0.0.1:…`. */
  readonly broker: string;
  readonly kafka: Kafka;
  stop(): Promise<void>;
}

/** Starts an empty Apache Kafka of one node (KRaft), on loopback. */
export async function startKafka(): Promise<RunningKafka> {
  const dir = await mkdtemp(join(tmpdir(), "ow-kafka-"));
  const [port, controllerPort] = [await freePort(), await freePort()];
  const config = join(dir, "server.properties");
  const settings = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.quorum.voters": `1@127.0.0.1:${controllerPort}`,
    "controller.listener.names": "CONTROLLER",
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    "log.dirs": join(dir, "data"),
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    // For tests of consumers that die.
    "group.min.session.timeout.ms": 1000,
  };
  await writeFile(
    config,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
  );
  const classPath = join(BROKER_JARS, "*");
  const clusterId = randomBytes(16).toString("base64url");
  await run("java", ["-cp", classPath, "kafka.tools.StorageTool", "format", "-t", clusterId, "-c", config]);
  const stop = await startJava(dir, port, ["kafka.Kafka", config]);
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, retries: 8 },
  });
  return { broker: `127.0.0.1:${port}`, kafka, stop };
}

/** Reads a topic until the test ends, and returns the list that gets the value and the error of each message. */
export async function readDeadLetters(kafka: Kafka, topic: string): Promise<readonly unknown[]> {
  const dead: unknown[] = [];
  const reader = kafka.consumer({ groupId: `${topic}-reader` });
  onTestFinished(() => reader.disconnect());
  await reader.connect();
  await reader.subscribe({ topic, fromBeginning: true });
  await reader.run({
    async eachMessage({ message: { value, headers } }) {
      dead.push([value?.toString(), headers?.["onceward-error"]?.toString()]);
    },
  });
  return dead;
}
