import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { AmbiguousError, createOnceward, OncewardError } from "./index.ts";
import { Record_State } from "./proto.ts";
import { createTestingOnceward } from "./testing.ts";

const id = { namespace: "charges", key: "order-1" };

async function reasonOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (error: unknown) => (error instanceof OncewardError ? error.reason : String(error)),
  );
}

test("a reply that is lost after its effect changes nothing", async () => {
  await using testing = createTestingOnceward();
  for (const call of ["claim", "complete"] as const) testing.faults.loseNextReply(call);
  expect(await testing.onceward.runDetailed(id, () => "done")).toMatchObject({ value: "done", attempt: 1 });
  expect(testing.counts).toMatchObject({ granted: 1, recovered: 1 });
});

test("an outage lasts until it is cleared", async () => {
  await using testing = createTestingOnceward();
  const run = () => testing.onceward.run({ ...id, timeoutMs: 100 }, () => "done");
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  expect([await reasonOf(run()), await reasonOf(run())]).toEqual([
    "DATABASE_UNAVAILABLE",
    "DATABASE_UNAVAILABLE",
  ]);
  testing.faults.clear();
  expect(await run()).toBe("done");
});

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

test("under HOLD a lapsed claim is ambiguous, in the namespaces that say so", async () => {
  await using testing = createTestingOnceward({ namespaces: { charges: { onLeaseExpiry: "HOLD" } } });
  const mail = { ...id, namespace: "mails" };
  for (const each of [id, mail]) await testing.onceward.api.claim({ ...each, owner: "died" });
  testing.clock.advance(30_000);
  await expect(testing.onceward.run(id, () => "done")).rejects.toThrow(AmbiguousError);
  const charge = testing.onceward.namespace(id.namespace).wrap(() => "done", { key: () => id.key });
  await expect(charge(undefined)).rejects.toThrow(AmbiguousError);
  expect(await charge(undefined, { acceptAmbiguous: true })).toBe("done");
  expect(await testing.onceward.run(mail, () => "done")).toBe("done");
});

test("a key is forgotten when its retention has ended, and the clock can be set to that moment", async () => {
  const now = new Date("2030-01-01T00:00:00Z");
  await using testing = createTestingOnceward({ now, policy: { keyRetentionS: 3600, resultRetentionS: 60 } });
  const { expiresAt } = await testing.onceward.runDetailed(id, () => "first");
  const forgottenAt = new Date("2030-01-01T01:00:00Z");
  expect(expiresAt).toEqual(forgottenAt);
  testing.clock.advance(60_000);
  expect(await reasonOf(testing.onceward.run(id, () => "again"))).toBe("RESULT_EXPIRED");
  testing.clock.advanceTo(forgottenAt);
  expect(testing.records()).toEqual([]);
  expect(await testing.onceward.run(id, () => "second")).toBe("second");
});

test("the clock does not go back", () => {
  const { clock } = createTestingOnceward({ now: new Date(5000) });
  for (const ms of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => clock.advance(ms)).toThrow(RangeError);
  expect(() => clock.advanceTo(new Date(4999))).toThrow(RangeError);
  expect(clock.nowMs).toBe(5000);
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

test("under fake timers that do not move, runs claim, complete and replay", async () => {
  await using testing = createTestingOnceward();
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const fn = vi.fn(() => "charged");
  for (let delivery = 0; delivery < 2; delivery++) {
    expect(await testing.onceward.run({ namespace: "charges", key: "order-1" }, fn)).toBe("charged");
  }
  expect(fn).toHaveBeenCalledOnce();
});
