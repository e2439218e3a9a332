import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  AmbiguousError,
  type Claim,
  CompletionError,
  createOnceward,
  InProgressError,
  type Onceward,
  OncewardError,
  OutcomeUnknownError,
} from "./index.ts";
import { Record_State } from "./proto.ts";
import { createTestingOnceward, type RefusalReason } from "./testing.ts";

// As the documentation of `testing.ts` shows it.
const order = { id: "order-1", cents: 100 };
const newBank = () => ({ charge: vi.fn(async (cents: number, key: string) => ({ cents, key })) });

const chargeOrder = (onceward: Onceward, bank: ReturnType<typeof newBank>) =>
  onceward.run({ namespace: "charges", key: order.id, fingerprint: order }, (claim) =>
    bank.charge(order.cents, claim.deriveKey("bank")),
  );

test("an order that is delivered twice at once is charged once", async () => {
  await using testing = createTestingOnceward();
  const bank = newBank();
  const deliveries = [chargeOrder(testing.onceward, bank), chargeOrder(testing.onceward, bank)];
  const [first, second] = await Promise.all(deliveries);
  expect(second).toEqual(first);
  expect(bank.charge).toHaveBeenCalledOnce();
  expect(testing.counts).toMatchObject({ granted: 1, replayed: 1 });
});

test("after a crash between the charge and its completion, the bank gets the same key again", async () => {
  await using testing = createTestingOnceward();
  const bank = newBank();
  testing.faults.failNext("complete", "INTERNAL");
  await expect(chargeOrder(testing.onceward, bank)).rejects.toThrow(CompletionError);
  testing.clock.advance(30_000);
  await chargeOrder(testing.onceward, bank);
  const [first, second] = bank.charge.mock.calls;
  expect(bank.charge).toHaveBeenCalledTimes(2);
  expect(second).toEqual(first);
});

const id = { namespace: "charges", key: "order-1" };

async function reasonOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (error: unknown) => (error instanceof OncewardError ? error.reason : String(error)),
  );
}

test("a reply that is lost after its effect changes nothing", async () => {
  await using testing = createTestingOnceward();
  const fn = vi.fn((_: Claim) => "done");
  for (const call of ["claim", "complete"] as const) testing.faults.loseNextReply(call);
  expect(await testing.onceward.runDetailed(id, fn)).toMatchObject({ value: "done", attempt: 1 });
  expect(fn).toHaveBeenCalledOnce();
  expect(testing.counts).toMatchObject({ granted: 1, recovered: 1 });
});

test("a refused call has no effect, and the client retries it if a retry can succeed", async () => {
  const reasons: readonly (readonly [RefusalReason, string])[] = [
    ["DATABASE_UNAVAILABLE", "none"],
    ["SHUTTING_DOWN", "none"],
    ["TENANT_MOVING", "none"],
    ["DEADLINE_EXCEEDED", "none"],
    ["TENANT_SUSPENDED", "TENANT_SUSPENDED"],
    ["INTERNAL", "INTERNAL"],
  ];
  for (const [reason, seen] of reasons) {
    await using testing = createTestingOnceward();
    testing.faults.failNext("claim", reason);
    expect(await reasonOf(testing.onceward.run(id, () => "done"))).toBe(seen);
    expect(testing.records()).toHaveLength(seen === "none" ? 1 : 0);
  }
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

test("another holder can have the claim, until the test's clock passes the end of the lease", async () => {
  await using testing = createTestingOnceward();
  await testing.onceward.api.claim({ ...id, owner: "somebody else" });
  const run = () => testing.onceward.run({ ...id, waitMs: 0 }, (claim) => claim.attempt);
  testing.clock.advance(29_999);
  await expect(run()).rejects.toThrow(InProgressError);
  testing.clock.advance(1);
  expect(await run()).toBe(2);
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

test("a holder that stalled past its lease is superseded by the next one", async () => {
  await using testing = createTestingOnceward();
  await using other = createOnceward({ transport: testing.transport, owner: "another worker" });
  const stalled = testing.onceward.run(id, async () => {
    testing.clock.advance(30_000);
    return await other.run(id, () => "the other's");
  });
  await expect(stalled).rejects.toMatchObject({
    reason: "CLAIM_SUPERSEDED",
    effect: { value: "the other's" },
  });
  expect(await testing.onceward.run(id, () => "mine")).toBe("the other's");
});

test("a function that can't know its outcome leaves its claim to the policy", async () => {
  await using testing = createTestingOnceward({ namespaces: { charges: { onLeaseExpiry: "HOLD" } } });
  const mail = { ...id, namespace: "mails" };
  const unknown = new OutcomeUnknownError("the provider timed out");
  for (const each of [id, mail]) {
    const failed = testing.onceward.run(each, () => Promise.reject(unknown));
    await expect(failed).rejects.toBe(unknown);
    const atOnce = testing.onceward.run({ ...each, onInProgress: "throw" }, () => "again");
    await expect(atOnce).rejects.toThrow(InProgressError);
  }
  testing.clock.advance(30_000);
  await expect(testing.onceward.run(id, () => "again")).rejects.toThrow(AmbiguousError);
  expect(await testing.onceward.run(mail, ({ attempt }) => attempt)).toBe(2);
});

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
