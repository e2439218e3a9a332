import { expect, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { jobOnce } from "../bullmq.ts";
import { idempotentUnary } from "../grpc.ts";
import { idempotent } from "../http.ts";
import { consumeOnce, eachMessageOnce as eachKafkaMessageOnce } from "../kafka.ts";
import { eachMessageOnce } from "../kafkajs.ts";
import { lambdaHttpOnce, lambdaOnce, sqsBatchOnce } from "../lambda.ts";
import { messageOnce as natsMessageOnce } from "../nats.ts";
import { messageOnce as pubSubMessageOnce } from "../pubsub.ts";
import { messageOnce as rabbitMessageOnce } from "../rabbitmq.ts";
import { messageOnce as sqsMessageOnce } from "../sqs.ts";
import { webhookOnce } from "../webhooks.ts";
import type { Onceward } from "./client.ts";

const namespace = "charges";
/** What a caller in JavaScript omits, or gets from a module that has no such export. */
const missing = undefined as never;

const operation = { namespace, key: "order-1" };

test.each<[string, (onceward: Onceward) => Promise<unknown>]>([
  ["run", (onceward) => onceward.run(operation, missing)],
  ["runDetailed", (onceward) => onceward.runDetailed(operation, missing)],
])("%s without a function claims nothing", async (_name, call) => {
  const { onceward, records } = newTesting();
  await expect(call(onceward)).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    violations: [{ field: "fn", description: "must be a function, is undefined" }],
  });
  expect(records()).toEqual([]);
});

test("a generator function, which would be stored as done and never run, claims nothing", async () => {
  const { onceward, records } = newTesting();
  for (const fn of [function* () {}, async function* () {}]) {
    await expect(onceward.run<unknown>(operation, fn)).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "fn", description: expect.stringMatching(/, is a generator function$/) }],
    });
  }
  expect(records()).toEqual([]);
});

type Make = (onceward: Onceward, options: never, fn: never) => unknown;

/** The consumers by their brokers, with the options of each, and what may become of a message besides a function's call. */
const CONSUMERS: readonly (readonly [name: string, make: Make, options: object, elsewhere: string])[] = [
  ["KafkaJS", eachMessageOnce, {}, '"skip"'],
  ["each message of Kafka", eachKafkaMessageOnce, {}, '"skip"'],
  [
    "streams of Kafka",
    (onceward, ...rest) => consumeOnce(onceward, missing, ...rest),
    { topics: [] },
    '"skip"',
  ],
  ["Pub/Sub", pubSubMessageOnce, {}, '"skip"'],
  ["NATS", natsMessageOnce, {}, '"skip"'],
  ["SQS", sqsMessageOnce, { client: missing, queueUrl: "q" }, '"skip" or "broker"'],
  ["batches of SQS", sqsBatchOnce, {}, '"skip" or "broker"'],
  ["RabbitMQ", rabbitMessageOnce, { channel: missing, queue: "q" }, '"skip" or "broker"'],
];

test.each(CONSUMERS)(
  "a consumer of %s is refused without a function, or a destination for hopeless messages",
  async (_, make, own, elsewhere) => {
    const { onceward } = newTesting();
    const refusalOf = async (deadLetter: unknown, fn: unknown) => {
      const options = { namespace, deadLetter, tooOld: "skip", ...own };
      return await (async () => make(onceward, options as never, fn as never))().catch(String);
    };
    expect(await refusalOf("skip", missing)).toContain(": fn must be a function, is undefined");
    const refusal = `: deadLetter must be a function or ${elsewhere}, is undefined`;
    expect(await refusalOf(missing, () => {})).toContain(refusal);
    expect(await refusalOf("drop", () => {})).toContain(refusal.replace("undefined", '"drop"'));
  },
);

test("jobs and handlers of Lambda or of webhooks are refused at once without a function", () => {
  const { onceward } = newTesting();
  const refusal = /^fn must be a function, is undefined$/;
  expect(() => jobOnce(onceward, { namespace }, missing)).toThrow(refusal);
  expect(() => lambdaOnce(onceward, { namespace, key: () => "order-1" }, missing)).toThrow(refusal);
  expect(() => webhookOnce(onceward, { namespace, source: missing }, missing)).toThrow(refusal);
  const http = { namespace, caller: () => "account-1" };
  expect(() => lambdaHttpOnce(onceward, http, missing)).toThrow(refusal);
  expect(() => lambdaHttpOnce(onceward, { ...http, namespace: "Charges" }, vi.fn())).toThrow("namespace");
});

test("handlers that are missing are refused before the first request", () => {
  const { onceward } = newTesting();
  const options = { namespace, caller: () => "account-1" };
  const refusal = /^handler must be a function, is undefined$/;
  expect(() => idempotent(onceward, options, missing)).toThrow(refusal);
  expect(() => idempotentUnary(onceward, missing, options, missing)).toThrow(refusal);
});
