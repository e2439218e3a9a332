import type { Message, Subscription } from "@google-cloud/pubsub";
import { TerminalError } from "@onceward/client";
import { createTestingOnceward } from "@onceward/client/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type MessageOptions, messageOnce, withKey } from "../../../clients/typescript/src/pubsub.ts";
import { describeConsumerAdapter } from "../../helpers/adapters/consumer-suite.ts";
import { collectWarnings, newCrowd, newTimedGuard } from "./fixtures.ts";
import { PubSubEndpoint } from "./pubsub-endpoint.ts";

/** The real package, against a server of the RPCs that it uses. */

const PATIENCE = { timeout: 30_000 };

let endpoint: PubSubEndpoint;
let subscription: Subscription;

beforeEach(async () => {
  // The package asks the network whether it runs on Google's machines.
  vi.stubEnv("METADATA_SERVER_DETECTION", "none");
  endpoint = new PubSubEndpoint();
  subscription = await endpoint.start();
});

afterEach(async () => {
  await subscription.close();
  await endpoint.stop();
  vi.unstubAllEnvs();
});

const attributesOf = (key: string | undefined) => (key === undefined ? {} : withKey(key, {}).attributes);
const quiet = {
  namespace: "charges",
  deadLetter: "skip" as const,
  tooOld: "skip" as const,
  redeliverAfterMs: 10,
  onDelivery: () => {},
};

describeConsumerAdapter(test, (onceward, options, fn) => {
  let kept = Promise.withResolvers<void>();
  const onDelivery: MessageOptions<Message>["onDelivery"] = ({ kind }) => {
    if (kind === "released" || kind === "postponed") kept.resolve();
  };
  const settings = { ...quiet, ...options, deadLetter: () => {}, onDelivery };
  const handle = messageOnce(onceward, settings, (message: Message, claim) =>
    fn(message.data.toString(), claim),
  );
  subscription.on("message", (message: Message) => void handle(message));
  let sent = 0;
  return {
    async deliver({ key }) {
      const id = `${++sent}`;
      kept = Promise.withResolvers<void>();
      endpoint.publish(id, attributesOf(key));
      const settled = vi.waitUntil(() => endpoint.acked.includes(id), { timeout: 5_000, interval: 5 });
      const outcome = Promise.race([
        settled.then(() => "settled" as const),
        kept.promise.then(() => "kept" as const),
      ]);
      settled.catch(() => {});
      return await outcome;
    },
  };
});

test("a key without a time has that at which its message was published", async () => {
  const guard = newTimedGuard();
  const deadLetter = vi.fn();
  const handle = messageOnce(guard.onceward, { ...guard.options, deadLetter }, () => {});
  subscription.on("message", (message) => void handle(message));
  endpoint.publish("1", attributesOf("order-1"));
  await expect.poll(() => endpoint.acked).toEqual(["1"]);
  endpoint.publish("2", attributesOf("order-2"), "", Date.now() - 120_000);
  await expect.poll(() => endpoint.acked).toEqual(["1", "2"]);
  expect(guard.kinds()).toEqual(["processed", "refused"]);
  expect(deadLetter).toHaveBeenCalledOnce();
});

test("an outage returns no message: it is acknowledged when the service answers", async () => {
  await using world = createTestingOnceward();
  world.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const kinds: string[] = [];
  const options = { ...quiet, timeoutMs: 50, onDelivery: ({ kind }: { kind: string }) => kinds.push(kind) };
  const handle = messageOnce(world.onceward, options, () => {});
  subscription.on("message", (message) => void handle(message));
  endpoint.publish("1", attributesOf("order-1"));
  await expect.poll(() => kinds.length).toBeGreaterThan(2);
  world.faults.clear();
  await expect.poll(() => endpoint.acked).toEqual(["1"]);
  expect(endpoint.nacked).toEqual([]);
});

test("messages of one ordering key run in order; those after a returned one are returned", async () => {
  await using world = createTestingOnceward();
  const ran: string[] = [];
  const other = Promise.withResolvers<void>();
  const handle = messageOnce(world.onceward, quiet, async ({ id }: Message) => {
    ran.push(id);
    if (id === "other") return other.resolve();
    await other.promise;
    if (ran.filter((name) => name === "1").length === 1) throw new Error("away");
  });
  subscription.on("message", (message) => void handle(message));
  for (const id of ["1", "2", "3"]) endpoint.publish(id, attributesOf(`order-${id}`), "customer-1");
  endpoint.publish("other", attributesOf("order-other"), "customer-2");
  await expect.poll(() => endpoint.acked).toEqual(["other", "1", "2", "3"]);
  expect(ran).toEqual(["1", "other", "1", "2", "3"]);
  expect(endpoint.nacked).toEqual(["1", "2", "3"]);
});

test("at most `concurrency` functions run at once", async () => {
  await using world = createTestingOnceward();
  const crowd = newCrowd();
  const handle = messageOnce(world.onceward, { ...quiet, concurrency: 2 }, crowd.work);
  const delivered: string[] = [];
  subscription.on("message", (message: Message) => {
    delivered.push(message.id);
    void handle(message);
  });
  const ids = ["1", "2", "3", "4", "5"];
  for (const id of ids) endpoint.publish(id, attributesOf(`order-${id}`));
  await expect.poll(() => delivered, PATIENCE).toEqual(ids);
  await world.onceward.run({ namespace: "charges", key: "another" }, () => {});
  crowd.end();
  await expect.poll(() => endpoint.acked, PATIENCE).toEqual(ids);
  expect(crowd.most()).toBe(2);
  expect(() => messageOnce(world.onceward, { ...quiet, concurrency: 0 }, crowd.work)).toThrow(
    "concurrency must be a whole number, 1-1000",
  );
});

test("closing the client returns the messages that wait for the service", async () => {
  await using world = createTestingOnceward();
  world.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const kinds: string[] = [];
  const options = { ...quiet, timeoutMs: 50, onDelivery: ({ kind }: { kind: string }) => kinds.push(kind) };
  const handle = messageOnce(world.onceward, options, () => {});
  subscription.on("message", (message) => void handle(message));
  endpoint.publish("1", attributesOf("order-1"));
  await expect.poll(() => kinds.length).toBeGreaterThan(1);
  expect([endpoint.nacked, endpoint.acked]).toEqual([[], []]);
  await world.onceward.close();
  await expect.poll(() => endpoint.nacked).toContain("1");
  expect(endpoint.acked).toEqual([]);
});

test("a message that no retry can help is acknowledged once it is dead-lettered, and not before", async () => {
  await using world = createTestingOnceward();
  const warnings = collectWarnings();
  const deadLetter = vi.fn().mockRejectedValueOnce(new Error("no topic")).mockResolvedValue(undefined);
  const handle = messageOnce(world.onceward, { ...quiet, deadLetter }, () => {
    throw new TerminalError("card declined");
  });
  subscription.on("message", (message) => void handle(message));
  endpoint.publish("1", attributesOf("order-1"));
  endpoint.publish("2", {});
  await expect.poll(() => endpoint.acked.toSorted()).toEqual(["1", "2"]);
  expect(endpoint.nacked).toHaveLength(1);
  expect(deadLetter).toHaveBeenCalledTimes(3);
  expect(warnings).toEqual(["ONCEWARD_DEAD_LETTER"]);
});
