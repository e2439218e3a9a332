import { describe, expect, test, vi } from "vitest";
import { type RecordId, recordName } from "../record.ts";
import { createWaiters } from "./waiters.ts";

const ONE: RecordId = { tenantId: 1, namespace: "charges", key: "order-1" };
const OTHER: RecordId = { ...ONE, key: "order-2" };
const A_MINUTE_MS = 60_000;
const CHECK_EVERY_MS = 100;

/** Returns waiters whose records are in progress until `release`. */
function setUp() {
  const released = new Set<string>();
  const findResolved = vi.fn(
    async (ids: readonly RecordId[]) =>
      new Set(ids.flatMap((id, index) => (released.has(recordName(id)) ? [index] : []))),
  );
  const onCheckFailed = vi.fn();
  const onFirstWaiter = vi.fn();
  const onLastWaiterGone = vi.fn();
  const waiters = createWaiters({ findResolved, onCheckFailed, onFirstWaiter, onLastWaiterGone });
  return {
    waiters,
    findResolved,
    onCheckFailed,
    onFirstWaiter,
    onLastWaiterGone,
    release: (id: RecordId) => released.add(recordName(id)),
  };
}

const NEVER = new AbortController().signal;

describe("a waiter", () => {
  test("is woken when its record is settled here, and no other waiter is", async () => {
    const { waiters } = setUp();
    const woken = [waiters.wait(ONE, A_MINUTE_MS, NEVER), waiters.wait(ONE, A_MINUTE_MS, NEVER)];
    const other = waiters.wait(OTHER, A_MINUTE_MS, NEVER);
    waiters.wake(recordName(ONE));
    await Promise.all(woken);
    expect(waiters.count()).toBe(1);
    waiters.wake(recordName(OTHER));
    await other;
    expect(waiters.count()).toBe(0);
  });

  test("is woken when its record is settled elsewhere; one statement checks all records", async () => {
    const { waiters, findResolved, release } = setUp();
    const waiting = [ONE, ONE, OTHER].map((id) => waiters.wait(id, A_MINUTE_MS, NEVER));
    release(ONE);
    await Promise.all(waiting.slice(0, 2));
    expect(findResolved.mock.calls[0]?.[0]).toEqual([ONE, OTHER]);
    expect(waiters.count()).toBe(1);
    release(OTHER);
    await waiting[2];
  });

  test("is checked periodically, and rejected with the error of the first check that fails", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const { waiters } = setUp();
      const denied = new Error("no longer");
      const checkCaller = vi
        .fn(async () => {})
        .mockResolvedValueOnce()
        .mockRejectedValueOnce(denied);
      const waiting = waiters.wait(ONE, A_MINUTE_MS, NEVER, checkCaller);
      const other = waiters.wait(ONE, A_MINUTE_MS, NEVER);
      vi.advanceTimersByTime(4000);
      await expect(waiting).rejects.toBe(denied);
      expect(waiters.count()).toBe(1);
      vi.advanceTimersByTime(A_MINUTE_MS);
      expect(checkCaller).toHaveBeenCalledTimes(2);
      waiters.wake(recordName(ONE));
      await other;
    } finally {
      vi.useRealTimers();
    }
  });

  test("is announced if it is the first for its record, and when the last one has left", async () => {
    const { waiters, onFirstWaiter, onLastWaiterGone } = setUp();
    const waiting = [waiters.wait(ONE, A_MINUTE_MS, NEVER), waiters.wait(ONE, A_MINUTE_MS, NEVER)];
    expect(onFirstWaiter.mock.calls).toEqual([[recordName(ONE)]]);
    expect(onLastWaiterGone).not.toHaveBeenCalled();
    waiters.wake(recordName(ONE));
    await Promise.all(waiting);
    expect(onLastWaiterGone.mock.calls).toEqual([[recordName(ONE)]]);
  });

  test("is woken when its timeout expires", async () => {
    const { waiters } = setUp();
    await waiters.wait(ONE, 1, NEVER);
    expect(waiters.count()).toBe(0);
  });

  test("is removed as soon as its caller cancels", async () => {
    const { waiters } = setUp();
    const leaving = new AbortController();
    const waiting = waiters.wait(ONE, A_MINUTE_MS, leaving.signal);
    leaving.abort();
    await expect(waiting).rejects.toMatchObject({ reason: "CANCELLED" });
    expect(waiters.count()).toBe(0);
    await expect(waiters.wait(ONE, A_MINUTE_MS, leaving.signal)).rejects.toMatchObject({
      reason: "CANCELLED",
    });
  });

  test("is rejected when the replica drains, and so are later waiters", async () => {
    const { waiters } = setUp();
    const waiting = waiters.wait(ONE, A_MINUTE_MS, NEVER);
    waiters.drain();
    const shuttingDown = { reason: "SHUTTING_DOWN", retryAfterMs: expect.any(Number) };
    await expect(waiting).rejects.toMatchObject(shuttingDown);
    await expect(waiters.wait(ONE, A_MINUTE_MS, NEVER)).rejects.toMatchObject(shuttingDown);
    expect(waiters.count()).toBe(0);
  });

  test("keeps waiting when a check fails", async () => {
    const { waiters, findResolved, onCheckFailed, release } = setUp();
    findResolved.mockRejectedValueOnce(new Error("away"));
    const waiting = waiters.wait(ONE, A_MINUTE_MS, NEVER);
    await vi.waitUntil(() => onCheckFailed.mock.calls.length === 1, 30_000);
    expect(waiters.count()).toBe(1);
    release(ONE);
    await waiting;
  });

  test("is kept while checks fail, then woken by the first success, without a timer left", async () => {
    vi.useFakeTimers();
    try {
      const { waiters, findResolved, onCheckFailed, onLastWaiterGone } = setUp();
      findResolved.mockRejectedValue(new Error("away"));
      const waiting = Array.from({ length: 50 }, () => waiters.wait(ONE, A_MINUTE_MS, NEVER));
      const failures = 100;
      await vi.advanceTimersByTimeAsync((failures / 2) * CHECK_EVERY_MS);
      const leaving = new AbortController();
      const cancelled = expect(waiters.wait(OTHER, A_MINUTE_MS, leaving.signal)).rejects.toThrow();
      const late = waiters.wait({ ...ONE, key: "order-3" }, CHECK_EVERY_MS, NEVER);
      await vi.advanceTimersByTimeAsync((failures / 2) * CHECK_EVERY_MS);
      leaving.abort();
      await Promise.all([cancelled, late]);
      expect([findResolved, onCheckFailed].map(({ mock }) => mock.calls.length)).toEqual([
        failures,
        failures,
      ]);
      expect(waiters.count()).toBe(waiting.length);
      findResolved.mockImplementation(async () => new Set([0]));
      await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
      await Promise.all(waiting);
      expect(waiters.count()).toBe(0);
      expect(onLastWaiterGone).toHaveBeenCalledTimes(3);
      expect(vi.getTimerCount()).toBe(0);
      expect(findResolved).toHaveBeenCalledTimes(failures + 1);
      const after = waiters.wait(ONE, A_MINUTE_MS, NEVER);
      await vi.advanceTimersByTimeAsync(CHECK_EVERY_MS);
      await after;
    } finally {
      vi.useRealTimers();
    }
  });

  test("is woken even if it arrived during a check in which all earlier waiters left", async () => {
    const { waiters, findResolved } = setUp();
    const check = Promise.withResolvers<void>();
    findResolved.mockImplementationOnce(async () => {
      await check.promise;
      return new Set();
    });
    const before = waiters.wait(ONE, A_MINUTE_MS, NEVER);
    await vi.waitUntil(() => findResolved.mock.calls.length === 1, 30_000);
    waiters.wake(recordName(ONE));
    await before;
    const waiting = waiters.wait(ONE, A_MINUTE_MS, NEVER);
    check.resolve();
    await vi.waitUntil(() => findResolved.mock.calls.length === 2, 30_000);
    waiters.wake(recordName(ONE));
    await waiting;
    expect(waiters.count()).toBe(0);
  });

  test("of many is checked in rotation, a bounded number at once", async () => {
    const { waiters, findResolved, release } = setUp();
    const ids = Array.from({ length: 2500 }, (_, index) => ({ ...ONE, key: `order-${index}` }));
    const waiting = ids.map((id) => waiters.wait(id, A_MINUTE_MS, NEVER));
    for (const id of ids) release(id);
    await Promise.all(waiting);
    expect(findResolved.mock.calls.map(([checked]) => checked.length)).toEqual([1000, 1000, 500]);
  });
});
