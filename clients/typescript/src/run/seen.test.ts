import { beforeEach, expect, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import type { TestingOnceward } from "../testing.ts";
import { didNotHappen } from "./resolution.ts";

const EVENT = { namespace: "events", key: "evt_1" };
const POLICY = { keyRetentionS: 120, resultRetentionS: 60 } as const;

let testing: TestingOnceward;

beforeEach(() => {
  testing = newTesting({ policy: POLICY });
});

test("a key is seen in a namespace whose runs resolve", async () => {
  const resolve = vi.fn(() => didNotHappen());
  const events = testing.onceward.namespace(EVENT.namespace, { resolve });
  expect([await events.seen(EVENT.key), await events.seen(EVENT.key)]).toEqual([false, true]);
  expect(await events.seenAll([EVENT.key, "evt_2"])).toEqual([true, false]);
  expect(resolve).not.toHaveBeenCalled();
});

test("many keys are answered in their order, and each that repeats is seen", async () => {
  const events = testing.onceward.namespace("events");
  expect(await events.seen("b")).toBe(false);
  expect(await events.seenAll(["a", "b", "a", "c"])).toEqual([false, true, true, false]);
  expect(await events.seenAll([])).toEqual([]);
  const keys = Array.from({ length: 2500 }, (_, index) => `key-${index}`);
  expect(new Set(await events.seenAll(keys))).toEqual(new Set([false]));
  await expect(testing.onceward.seenAll({ ...EVENT, keys: "a" as never })).rejects.toThrow("keys");
});
