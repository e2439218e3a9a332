import { createRequire } from "node:module";
import { createOnceward, TerminalError } from "@onceward/client";
import { eachMessageOnce } from "@onceward/client/kafka";
import type { EachMessagePayload } from "kafkajs";

/**
 * A consumer of `@confluentinc/kafka-javascript` in a project of its own, which runs on the Node that the package is compiled
 * for. Prints a line for each effect and each delivery, and stops when standard input ends.
 */

/** The settings of a worker. */
export interface ConfluentWorkerSettings {
  readonly broker: string;
  readonly group: string;
  readonly topic: string;
  /** The topic of messages that no retry can help. */
  readonly deadTopic: string;
  readonly address: string;
  readonly apiKey: string;
}

/** A printed line, as JSON. A message whose value is `declined` fails permanently, without an effect. */
export type ConfluentWorkerLine =
  | { readonly performed: string; readonly value: string }
  | { readonly delivery: string };

/** The part of the package that the worker uses. Its own types are not installed beside the tests. */
interface Package {
  readonly KafkaJS: {
    readonly logLevel: { readonly NOTHING: number };
    readonly Kafka: new (
      settings: object,
    ) => {
      consumer(settings: object): {
        connect(): Promise<void>;
        subscribe(options: { topics: readonly string[] }): Promise<void>;
        run(options: { eachMessage(payload: EachMessagePayload): Promise<void> }): Promise<void>;
        disconnect(): Promise<void>;
      };
      producer(): {
        connect(): Promise<void>;
        send(record: { topic: string; messages: readonly object[] }): Promise<unknown>;
        disconnect(): Promise<void>;
      };
    };
  };
}

const settings: ConfluentWorkerSettings = JSON.parse(process.argv[2] ?? "");
const { KafkaJS } = createRequire(import.meta.url)("@confluentinc/kafka-javascript") as Package;

const onceward = createOnceward({ address: settings.address, apiKey: settings.apiKey });
const kafka = new KafkaJS.Kafka({
  kafkaJS: { brokers: [settings.broker], logLevel: KafkaJS.logLevel.NOTHING },
});
const producer = kafka.producer();
const consumer = kafka.consumer({
  kafkaJS: { groupId: settings.group, fromBeginning: true, autoCommitInterval: 100 },
});

function print(line: ConfluentWorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

await producer.connect();
await consumer.connect();
await consumer.subscribe({ topics: [settings.topic] });
await consumer.run({
  eachMessage: eachMessageOnce<EachMessagePayload>(
    onceward,
    {
      namespace: "charges",
      deadLetter: ({ message: { value, headers } }, error) =>
        producer.send({
          topic: settings.deadTopic,
          messages: [{ value, headers: { ...headers, "onceward-error": error.message } }],
        }),
      waitMs: 0,
      redeliverAfterMs: 200,
      onDelivery: ({ kind }) => print({ delivery: kind }),
    },
    ({ message }, { key }) => {
      const value = `${message.value}`;
      if (value === "declined") throw new TerminalError("card declined");
      print({ performed: key, value });
    },
  ),
});

process.stdin.resume();
process.stdin.once("end", async () => {
  await consumer.disconnect();
  await producer.disconnect();
  await onceward.close();
});
