import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createOnceward } from "./index.ts";
import { Record_State } from "./proto.ts";
import { createTestingOnceward } from "./testing.ts";

const id = { namespace: "charges", key: "order-1" };

test("several faults of one call are used in order, alone and in batches, by no other call", async () => {
  await using testing = createTestingOnceward();
  const { api } = testing.onceward;
  testing.faults.failNext("lookup", "OVERLOADED", 2);
  testing.faults.failNext("lookup", "INTERNAL");
  const lookup = { request: { case: "lookup", value: id } } as const;
  await expect(api.lookup(id)).rejects.toMatchObject({ code: Code.Unavailable });
  await api.claim(id);
  const { items } = await api.batch({ items: [lookup, lookup, lookup] });
  expect(items.map(({ response }) => response)).toMatchObject([
    { case: "error", value: { code: Code.Unavailable, retryDelay: {} } },
    { case: "error", value: { code: Code.Internal } },
    { case: "lookup" },
  ]);
});

test("a run that waits for another client's claim continues when the lease ends", async () => {
  await using testing = createTestingOnceward();
  await using other = createOnceward({ transport: testing.transport, owner: "another worker" });
  await other.api.claim(id);
  const waiting = testing.onceward.run({ ...id, waitMs: 60_000 }, (claim) => claim.attempt);
  await expect.poll(() => testing.waiting, { interval: 1 }).toBe(1);
  testing.clock.advance(30_000);
  expect(await waiting).toBe(2);
}, 10_000);

test("the clock does not go back", () => {
  const { clock } = createTestingOnceward({ now: new Date(5000) });
  for (const ms of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => clock.advance(ms)).toThrow(RangeError);
  expect(() => clock.advanceTo(new Date(4999))).toThrow(RangeError);
  expect(clock.nowMs).toBe(5000);
  clock.advanceTo(new Date(6000));
  expect(clock.nowMs).toBe(6000);
});

test("records() returns records as Lookup does, in the order of the first claims", async () => {
  await using testing = createTestingOnceward();
  await testing.onceward.run(id, () => "done");
  await testing.onceward.api.claim({ ...id, key: "order-2" });
  await testing.onceward.run({ ...id, key: "order-1" }, () => "done");
  expect(testing.records()).toMatchObject([
    { key: "order-1", state: Record_State.COMPLETED },
    { key: "order-2", state: Record_State.IN_PROGRESS },
  ]);
  expect(testing.records()[0]).toEqual((await testing.onceward.api.lookup(id)).record);
});

test("each testing Onceward is a separate service", async () => {
  await using one = createTestingOnceward();
  await using other = createTestingOnceward();
  await one.onceward.run(id, () => "one");
  expect(await other.onceward.run(id, () => "other")).toBe("other");
});
