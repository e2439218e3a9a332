import { expect, onTestFinished, test } from "vitest";
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
import { createTestingOnceward, type TestingOnceward } from "../testing.ts";
import { webhookOnce } from "../webhooks.ts";
import type { Onceward } from "./client.ts";

const namespace = "charges";
/** What a caller in JavaScript leaves out, or gets from a module that has no such export. */
const missing = undefined as never;

function newTesting(): TestingOnceward {
  const testing = createTestingOnceward();
  onTestFinished(() => testing.onceward.close());
  return testing;
}

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

test("consumers without a function are refused before the first message", async () => {
  const { onceward } = newTesting();
  const refusal = /^fn must be a function, is undefined$/;
  expect(() => jobOnce(onceward, { namespace }, missing)).toThrow(refusal);
  expect(() => eachMessageOnce(onceward, { namespace, deadLetter: async () => {} }, missing)).toThrow(
    refusal,
  );
  expect(() => sqsMessageOnce(onceward, { namespace, client: missing, queueUrl: "q" }, missing)).toThrow(
    refusal,
  );
  const skipping = { namespace, deadLetter: "skip" as const };
  expect(() => eachKafkaMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => consumeOnce(onceward, missing, { ...skipping, topics: [] }, missing)).toThrow(refusal);
  expect(() => pubSubMessageOnce(onceward, skipping, missing)).toThrow(refusal);
  expect(() => natsMessageOnce(onceward, { namespace }, missing)).toThrow(refusal);
  expect(() => sqsBatchOnce(onceward, { namespace }, missing)).toThrow(refusal);
  expect(() => lambdaOnce(onceward, { namespace, key: () => "order-1" }, missing)).toThrow(refusal);
  expect(() => webhookOnce(onceward, { namespace, source: missing }, missing)).toThrow(refusal);
  const rabbit = rabbitMessageOnce(onceward, missing, { namespace, queue: "q" }, missing);
  await expect(rabbit).rejects.toThrow(refusal);
});

test("handlers that are missing are refused before the first request", () => {
  const { onceward } = newTesting();
  const options = { namespace, caller: () => "account-1" };
  expect(() => idempotent(onceward, options, missing)).toThrow(new TypeError("handler must be a function"));
  expect(() => idempotentUnary(onceward, missing, options, missing)).toThrow(
    new TypeError("handler must be a function"),
  );
});
