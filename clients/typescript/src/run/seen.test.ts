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

test("at most once, a key is completed before its function, which no repeat runs again", async () => {
  const { onceward } = testing;
  const options = { ...EVENT, mode: "at-most-once" } as const;
  const fn = vi.fn((claim: { readonly attempt: number; readonly guarded: boolean }) => {
    const [record] = testing.records();
    expect([record?.completedAt !== undefined, claim.attempt, claim.guarded]).toEqual([true, 1, true]);
    throw new Error("lost");
  });
  await expect(onceward.run(options, fn)).rejects.toThrow("lost");
  expect(await onceward.run(options, fn)).toBeUndefined();
  expect(fn).toHaveBeenCalledTimes(1);
  const other = await onceward.runDetailed({ ...options, key: "evt_2" }, () => ({ id: 7 }));
  expect(other).toMatchObject({ value: { id: 7 }, replayed: false, attempt: 1 });
  await expect(onceward.run({ ...options, mode: "twice" as never }, fn)).rejects.toThrow("at-most-once");
});

test("a run that stores a mark returns its value to the first caller alone", async () => {
  const { onceward } = testing;
  const options = { ...EVENT, stores: "mark" } as const;
  expect(await onceward.run(options, () => ({ secret: "once" }))).toEqual({ secret: "once" });
  await expect(onceward.run(options, () => ({ secret: "twice" }))).rejects.toMatchObject({
    reason: "RESULT_LOST",
    message: expect.stringContaining("its value is not kept"),
  });
  const [record] = testing.records();
  expect(record?.result?.payload).toEqual(new Uint8Array());
  await expect(onceward.run({ ...options, stores: "all" as never }, () => {})).rejects.toThrow("mark");
});
