import { expect, test } from "vitest";
import { recordName } from "../record.ts";
import { createRoundRobin } from "./round-robin.ts";
import { createWaiters } from "./waiters.ts";

/** Returns groups of these sizes, with names such as `1a` in group 1. */
function newRoundRobin(sizes: Readonly<Record<number, number>>) {
  const names = createRoundRobin();
  for (const [group, size] of Object.entries(sizes)) {
    for (const letter of "abcdefgh".slice(0, size)) names.add(Number(group), `${group}${letter}`);
  }
  return names;
}

test("groups are served in rotation, and a name is returned again after all others of its group", () => {
  const names = newRoundRobin({ 1: 4, 2: 1, 3: 2 });
  expect(names.next(5)).toEqual(["1a", "2a", "3a", "1b", "3b"]);
  expect(names.next(5)).toEqual(["1c", "2a", "3a", "1d", "3b"]);
  expect(names.next(100)).toHaveLength(7);
});

test("groups that got no name are served first the next time", () => {
  const names = newRoundRobin({ 1: 2, 2: 2, 3: 2 });
  expect(names.next(2)).toEqual(["1a", "2a"]);
  expect(names.next(2)).toEqual(["3a", "1b"]);
});

test("a removed name is not returned", () => {
  const names = newRoundRobin({ 1: 2, 2: 1 });
  names.remove(1, "1a");
  names.remove(2, "2a");
  names.remove(2, "2a");
  expect(names.next(10)).toEqual(["1b"]);
});

test("a tenant that waits for many keys does not delay another tenant's wake-up by a check", async () => {
  const checks: number[] = [];
  const modest = { tenantId: 2, namespace: "charges", key: "order-1" };
  const waiters = createWaiters({
    // The other tenant's record is settled on another replica.
    async findResolved(ids) {
      checks.push(ids.length);
      const index = ids.findIndex(({ tenantId }) => tenantId === modest.tenantId);
      return new Set(index < 0 ? [] : [index]);
    },
    onCheckFailed() {},
    onFirstWaiter() {},
    onLastWaiterGone() {},
    checkEveryMs: 1,
  });
  // A signal of its own for each call: removing one of many listeners of a signal takes time for all of them.
  const never = () => new AbortController().signal;
  const greedy = Array.from({ length: 5000 }, (_, i) =>
    waiters.wait({ tenantId: 1, namespace: "charges", key: `order-${i}` }, 60_000, never()),
  );
  await waiters.wait(modest, 60_000, never());
  expect(checks).toEqual([1000]);
  waiters.wake(recordName(modest));
  waiters.drain();
  await Promise.allSettled(greedy);
  expect(waiters.count()).toBe(0);
});
