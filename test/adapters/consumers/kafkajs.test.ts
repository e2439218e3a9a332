import { TerminalError } from "@onceward/client";
import type { EachMessagePayload, Message } from "kafkajs";
import { expect, test, vi } from "vitest";
import {
  deadLetterTo,
  type EachMessageOptions,
  eachMessageOnce,
  KEY_HEADER,
  readJson,
  withKey,
} from "../../../clients/typescript/src/kafkajs.ts";
import { describeConsumerAdapter } from "../../support/adapters/consumer-suite.ts";
import { eventually, type Guarded, newTimedGuard, useGuards } from "./fixtures.ts";

/**
 * Returns the argument of `eachMessage`, as recorded with KafkaJS: header values and bodies are buffers.
 * Tests with a real broker are in `test/brokers/`.
 */
function delivered({ headers = {}, value, timestamp = `${Date.now()}` }: Message, offset = "42") {
  const resume = vi.fn();
  const pause = vi.fn(() => resume);
  const payload: EachMessagePayload = {
    topic: "charges",
    partition: 3,
    message: {
      key: Buffer.from("customer-7"),
      value: value === null ? null : Buffer.from(value),
      timestamp,
      attributes: 0,
      offset,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, header]) => [
          name,
          Array.isArray(header) ? header.map((one) => Buffer.from(one)) : Buffer.from(header ?? ""),
        ]),
      ),
    },
    heartbeat: async () => {},
    pause,
  };
  return { payload, pause, resume };
}

const newGuard = useGuards();

function consumer(
  { onceward, options }: Pick<Guarded, "onceward" | "options">,
  fn: Parameters<typeof eachMessageOnce>[2],
  more: Partial<EachMessageOptions> = {},
) {
  const deadLetter = vi.fn<Exclude<EachMessageOptions["deadLetter"], string>>(async () => {});
  return { deadLetter, eachMessage: eachMessageOnce(onceward, { ...options, deadLetter, ...more }, fn) };
}

const order = withKey("order-1", { value: '{"amount":100}' });

describeConsumerAdapter(test, (onceward, options, fn) => {
  const settings = { ...options, deadLetter: async () => {}, waitMs: 0, onDelivery: () => {} };
  const eachMessage = eachMessageOnce(onceward, settings, ({ message }, claim) =>
    fn(`${message.value}`, claim),
  );
  return {
    deliver: ({ key, body: value }) =>
      eachMessage(delivered(key === undefined ? { value } : withKey(key, { value })).payload).then(
        () => "settled",
        () => "kept",
      ),
  };
});

test("a key without a time gets its message's; a late one goes to a topic with its reason", async () => {
  const guard = newTimedGuard();
  const send = vi.fn();
  const { eachMessage } = consumer(guard, vi.fn(), { deadLetter: deadLetterTo({ send }, "charges.dead") });
  await eachMessage(delivered(order).payload);
  const timestamp = `${Date.now() - 120_000}`;
  await eachMessage(delivered({ ...withKey("order-2", order), timestamp }).payload);
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  const headers = expect.objectContaining({ "onceward-error": expect.stringContaining("under a new key") });
  const messages = [expect.objectContaining({ timestamp, headers })];
  expect(send).toHaveBeenCalledExactlyOnceWith({ topic: "charges.dead", messages });
});

test("while another holder runs the operation, the partition is paused without a commit", async () => {
  await using guard = await newGuard();
  await guard.holdElsewhere("order-1");
  const fn = vi.fn();
  const { eachMessage, deadLetter } = consumer(guard, fn, { waitMs: 0, redeliverAfterMs: 1 });
  const { payload, pause, resume } = delivered(order);
  await expect(eachMessage(payload)).rejects.toMatchObject({ name: "InProgressError", owner: "elsewhere" });
  expect(pause).toHaveBeenCalledOnce();
  await eventually(() => expect(resume).toHaveBeenCalledOnce());
  expect(fn).not.toHaveBeenCalled();
  expect(deadLetter).not.toHaveBeenCalled();
});

test("a consumer waits for another holder that finishes soon, and pauses nothing", async () => {
  await using guard = await newGuard();
  const complete = await guard.holdElsewhere("order-1");
  const { eachMessage } = consumer(guard, vi.fn());
  const { payload, pause } = delivered(order);
  const waiting = eachMessage(payload);
  await complete();
  await waiting;
  expect(guard.kinds()).toEqual(["duplicate"]);
  expect(pause).not.toHaveBeenCalled();
});

test("the offset of an ambiguous record is not committed either", async () => {
  await using guard = await newGuard();
  await guard.holdExpired();
  await guard.onceward.calls.claim({ namespace: "charges", key: "order-1", owner: "dead" });
  await guard.endLeases();
  const { eachMessage } = consumer(guard, vi.fn(), { redeliverAfterMs: 1 });
  const { payload, pause } = delivered(order);
  await expect(eachMessage(payload)).rejects.toMatchObject({ name: "AmbiguousError", owner: "dead" });
  expect(pause).toHaveBeenCalledOnce();
});

test("KafkaJS gets the function's error, the partition waits, and the next delivery runs again", async () => {
  await using guard = await newGuard();
  const thrown = new Error("the provider is down");
  const fn = vi.fn().mockImplementationOnce(() => {
    throw thrown;
  });
  const { eachMessage } = consumer(guard, fn, { redeliverAfterMs: 1 });
  const { payload, pause } = delivered(order);
  await expect(eachMessage(payload)).rejects.toBe(thrown);
  expect(pause).toHaveBeenCalledOnce();
  await eachMessage(payload);
  expect(guard.deliveries).toMatchObject([{ kind: "released" }, { kind: "processed", attempt: 2 }]);
});

test.each([TypeError, RangeError, ReferenceError, SyntaxError])(
  "a %o, which would stop KafkaJS permanently, reaches it as the cause of another error",
  async (Fatal) => {
    await using guard = await newGuard();
    const thrown = new Fatal("a defect");
    const { eachMessage } = consumer(guard, vi.fn().mockRejectedValueOnce(thrown), { redeliverAfterMs: 1 });
    const error = await eachMessage(delivered(order).payload).then(
      () => undefined,
      (cause) => cause,
    );
    expect(error).not.toBeInstanceOf(Fatal);
    expect(error).toMatchObject({ message: `${Fatal.name}: a defect`, cause: thrown });
  },
);

test("an operation that failed permanently is dead-lettered at each delivery, and committed", async () => {
  await using guard = await newGuard();
  const fn = vi.fn(() => {
    throw new TerminalError("card declined");
  });
  const { eachMessage, deadLetter } = consumer(guard, fn);
  for (let times = 0; times < 2; times++) await eachMessage(delivered(order).payload);
  expect(guard.kinds()).toEqual(["failed", "duplicate"]);
  expect(deadLetter.mock.calls.map(([, error]) => error.message)).toEqual(["card declined", "card declined"]);
  expect(fn).toHaveBeenCalledOnce();
});

test("a message that could not be dead-lettered is not committed", async () => {
  await using guard = await newGuard();
  const refuse = async () => {
    throw new Error("no leader");
  };
  const { eachMessage } = consumer(guard, vi.fn(), { deadLetter: refuse });
  await expect(eachMessage(delivered({ value: "{}" }).payload)).rejects.toThrow("no leader");
});

test.each([
  ["without a key", { value: "{}" }],
  ["with two keys", { value: "{}", headers: { [KEY_HEADER]: ["order-1", "order-2"] } }],
  ["with an empty key", { value: "{}", headers: { [KEY_HEADER]: "" } }],
])("a message %s is dead-lettered, and nothing runs", async (_, message) => {
  await using guard = await newGuard();
  const fn = vi.fn();
  const { eachMessage, deadLetter } = consumer(guard, fn);
  await eachMessage(delivered(message).payload);
  expect(guard.kinds()).toEqual(["refused"]);
  expect(deadLetter).toHaveBeenCalledOnce();
  expect(fn).not.toHaveBeenCalled();
});

test.each([
  ["a tombstone", null],
  ["a body that is not JSON", "{"],
])("%s fails permanently, and does not stop the consumer", async (_, value) => {
  await using guard = await newGuard();
  const { eachMessage, deadLetter } = consumer(guard, ({ message }) => readJson(message.value));
  await eachMessage(delivered(withKey("order-1", { value })).payload);
  expect(guard.deliveries).toMatchObject([{ kind: "failed", error: { name: "TerminalError" } }]);
  expect(deadLetter).toHaveBeenCalledOnce();
});

test("a message is sent to the dead-letter topic unchanged, with its error", async () => {
  const send = vi.fn(async () => []);
  const { payload } = delivered(order);
  await deadLetterTo({ send }, "charges.dead")(payload, new Error("card declined"));
  const { key, value, timestamp, headers } = payload.message;
  expect(send).toHaveBeenCalledExactlyOnceWith({
    topic: "charges.dead",
    messages: [{ key, value, timestamp, headers: { ...headers, "onceward-error": "card declined" } }],
  });
});

test("while the service is unreachable, the partition waits", async () => {
  await using guard = await newGuard();
  await guard.onceward.close();
  const { eachMessage } = consumer(guard, vi.fn(), { redeliverAfterMs: 1 });
  const { payload, pause } = delivered(order);
  await expect(eachMessage(payload)).rejects.toMatchObject({ reason: "CLOSED" });
  expect(pause).toHaveBeenCalledOnce();
});
