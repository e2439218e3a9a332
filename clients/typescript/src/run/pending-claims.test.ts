import { expect, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { AmbiguousError } from "../errors/errors.ts";
import { Record_State } from "../gen/onceward/v1/record_pb.ts";
import type { TestingOnceward } from "../testing.ts";
import { createOnceward } from "./onceward.ts";
import { didNotHappen, type UnresolvedClaim, unknown } from "./resolution.ts";

const operation = { namespace: "charges", key: "order-1" };
const HOLD = { policy: { onLeaseExpiry: "HOLD" } } as const;
/** Gives up after the first calls. */
const impatient = { ...operation, timeoutMs: 1 };

function untilReleased(testing: TestingOnceward) {
  return vi.waitFor(
    () => expect(testing.records()).toMatchObject([{ state: Record_State.RELEASED }]),
    30_000,
  );
}

test("after an outage, the claim of a run that gave up is released for the next delivery", async () => {
  const testing = newTesting(HOLD);
  testing.faults.loseNextReply("claim");
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const fn = vi.fn(() => "charged");
  await expect(testing.onceward.run(impatient, fn)).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(testing.records()).toMatchObject([{ state: Record_State.IN_PROGRESS }]);
  testing.faults.clear();
  await untilReleased(testing);
  expect(fn).not.toHaveBeenCalled();
  expect(await testing.onceward.run({ ...operation, waitMs: 0 }, fn)).toBe("charged");
});

test("a continued claim is not released, because its effect may have begun in an earlier process", async () => {
  const testing = newTesting(HOLD);
  const continued = { ...impatient, claimId: "execution-1", owner: "execution-1" };
  await testing.onceward.calls.claim({ ...operation, claimId: "execution-1", owner: "execution-1" });
  testing.faults.loseNextReply("claim");
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  await expect(testing.onceward.run(continued, vi.fn())).rejects.toThrow();
  testing.faults.clear();
  await Promise.all(testing.onceward.calls.background);
  expect(testing.records()).toMatchObject([{ state: Record_State.IN_PROGRESS }]);
});

test("an undecided search of a continued claim is left to its lease, and counts from now", async () => {
  const testing = newTesting(HOLD);
  const continued = { ...operation, claimId: "execution-1", waitMs: 0 };
  await testing.onceward.calls.claim(operation);
  testing.clock.advance(86_400_000);
  // The effect begins, and its process dies.
  const found = { ...continued, resolve: () => didNotHappen() };
  void testing.onceward.run(found, () => new Promise(() => {}));
  await vi.waitUntil(() => testing.records()[0]?.attempt === 2, 30_000);
  const resolve = vi.fn((_: UnresolvedClaim) => unknown());
  await expect(testing.onceward.run({ ...continued, resolve }, vi.fn())).rejects.toThrow(AmbiguousError);
  expect(resolve.mock.calls[0]?.[0].msSinceEffectMayHaveBegun).toBeLessThan(3_600_000);
  expect(testing.records()).toMatchObject([{ state: Record_State.IN_PROGRESS, attempt: 2 }]);
});

test("a release that fails is tried again", async () => {
  const testing = newTesting(HOLD);
  testing.faults.loseNextReply("claim");
  testing.faults.failNext("claim", "TENANT_SUSPENDED", 1);
  testing.faults.failNext("release", "DATABASE_UNAVAILABLE", 3);
  await expect(testing.onceward.run(operation, vi.fn())).rejects.toMatchObject({
    reason: "TENANT_SUSPENDED",
  });
  await untilReleased(testing);
});

test.each(["TENANT_SUSPENDED", "OVERLOADED"] as const)(
  "a claim that is refused with %s is not claimed again for its release",
  async (reason) => {
    const testing = newTesting(HOLD);
    testing.faults.failNext("claim", reason, Number.POSITIVE_INFINITY);
    await expect(testing.onceward.run(impatient, vi.fn())).rejects.toMatchObject({ reason });
    expect([...testing.onceward.calls.background]).toEqual([]);
  },
);

test("after an outage in which nothing was granted, the release claims nothing itself", async () => {
  const testing = newTesting(HOLD);
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  await expect(testing.onceward.run(impatient, vi.fn())).rejects.toMatchObject({
    reason: "DATABASE_UNAVAILABLE",
  });
  testing.faults.clear();
  await Promise.all(testing.onceward.calls.background);
  expect(testing.records()).toEqual([]);
});

test("a client that closes in an outage tries once more to release, without waiting", async () => {
  const testing = newTesting(HOLD);
  const onceward = createOnceward({ transport: testing.transport, owner: "worker-2" });
  testing.faults.loseNextReply("claim");
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  await expect(onceward.run(impatient, vi.fn())).rejects.toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  await onceward.close();
  expect(testing.records()).toMatchObject([{ state: Record_State.IN_PROGRESS }]);
});
