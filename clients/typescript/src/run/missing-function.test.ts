import { expect, test } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { jobOnce } from "../bullmq.ts";
import { idempotentUnary } from "../grpc.ts";
import { idempotent } from "../http.ts";
import { consumeOnce, eachMessageOnce as eachKafkaMessageOnce } from "../kafka.ts";
import { eachMessageOnce } from "../kafkajs.ts";
import { lambdaOnce, sqsBatchOnce } from "../lambda.ts";
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

test("consumers without a function are refused before the first message", async () => {
  const { onceward } = newTesting();
  const refusal = /^fn must be a function, is undefined$/;
  expect(() => jobOnce(onceward, { namespace }, missing)).toThrow(refusal);
  const skipping = { namespace, deadLetter: "skip" as const, tooOld: "skip" as const };
  expect(() => eachMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  const sqs = { ...skipping, client: missing, queueUrl: "q" };
  expect(() => sqsMessageOnce(onceward, sqs, missing)).toThrow(refusal);
  expect(() => eachKafkaMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => consumeOnce(onceward, missing, { ...skipping, topics: [] }, missing)).toThrow(refusal);
  expect(() => pubSubMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => natsMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => sqsBatchOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => lambdaOnce(onceward, { namespace, key: () => "order-1" }, missing)).toThrow(refusal);
  expect(() => webhookOnce(onceward, { namespace, source: missing }, missing)).toThrow(refusal);
  const rabbit = rabbitMessageOnce(onceward, { ...skipping, channel: missing, queue: "q" }, missing);
  await expect(rabbit).rejects.toThrow(refusal);
});

test("consumers without a destination for hopeless messages are refused before the first one", async () => {
  const { onceward } = newTesting();
  const undecided = { namespace, deadLetter: missing };
  const fn = () => {};
  const refusal = /^deadLetter must be a function or "skip", is undefined$/;
  expect(() => eachMessageOnce(onceward, undecided, fn)).toThrow(refusal);
  expect(() => eachKafkaMessageOnce(onceward, undecided, fn)).toThrow(refusal);
  expect(() => consumeOnce(onceward, missing, { ...undecided, topics: [] }, fn)).toThrow(refusal);
  expect(() => pubSubMessageOnce(onceward, undecided, fn)).toThrow(refusal);
  expect(() => natsMessageOnce(onceward, undecided, fn)).toThrow(refusal);
  expect(() => natsMessageOnce(onceward, { namespace, deadLetter: "broker" as never }, fn)).toThrow(
    'deadLetter must be a function or "skip", is "broker"',
  );
  const brokers = /^deadLetter must be a function or "skip" or "broker", is undefined$/;
  const sqs = { ...undecided, client: missing, queueUrl: "q" };
  expect(() => sqsMessageOnce(onceward, sqs, fn)).toThrow(brokers);
  expect(() => sqsBatchOnce(onceward, undecided, fn)).toThrow(brokers);
  const rabbit = rabbitMessageOnce(onceward, { ...undecided, channel: missing, queue: "q" }, fn);
  await expect(rabbit).rejects.toThrow(brokers);
});

test("handlers that are missing are refused before the first request", () => {
  const { onceward } = newTesting();
  const options = { namespace, caller: () => "account-1" };
  const refusal = /^handler must be a function, is undefined$/;
  expect(() => idempotent(onceward, options, missing)).toThrow(refusal);
  expect(() => idempotentUnary(onceward, missing, options, missing)).toThrow(refusal);
});
