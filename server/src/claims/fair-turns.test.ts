import { expect, test } from "vitest";
import { recordName } from "../domain/record.ts";
import { createFairTurns } from "./fair-turns.ts";
import { createWaiters } from "./waiters.ts";

/** Lanes by number, each with names such as `1a`. */
function newTurns(lanes: Readonly<Record<number, number>>) {
  const turns = createFairTurns();
  for (const [lane, count] of Object.entries(lanes)) {
    for (const letter of "abcdefgh".slice(0, count)) turns.add(Number(lane), `${lane}${letter}`);
  }
  return turns;
}

test("lanes take turns, and names of a lane come again once all of it have", () => {
  const turns = newTurns({ 1: 4, 2: 1, 3: 2 });
  expect(turns.next(5)).toEqual(["1a", "2a", "3a", "1b", "3b"]);
  expect(turns.next(5)).toEqual(["1c", "2a", "3a", "1d", "3b"]);
  expect(turns.next(100)).toHaveLength(7);
});

test("with more lanes than names are taken, the others come next", () => {
  const turns = newTurns({ 1: 2, 2: 2, 3: 2 });
  expect(turns.next(2)).toEqual(["1a", "2a"]);
  expect(turns.next(2)).toEqual(["3a", "1b"]);
});

test("a name that was removed does not come any more", () => {
  const turns = newTurns({ 1: 2, 2: 1 });
  turns.remove(1, "1a");
  turns.remove(2, "2a");
  turns.remove(2, "2a");
  expect(turns.next(10)).toEqual(["1b"]);
});

test("a tenant that waits for many keys delays no wake-up of another by a look", async () => {
  const looks: number[] = [];
  const modest = { tenantId: 2, namespace: "charges", key: "order-1" };
  const waiters = createWaiters({
    // The other tenant's record is settled on another replica.
    async findResolved(ids) {
      looks.push(ids.length);
      const place = ids.findIndex(({ tenantId }) => tenantId === modest.tenantId);
      return new Set(place < 0 ? [] : [place]);
    },
    onLookFailed() {},
    onFirstWaiter() {},
    onLastWaiterGone() {},
    tickMs: 1,
  });
  const leaving = new AbortController();
  const greedy = Array.from({ length: 5000 }, (_, i) =>
    waiters.wait({ tenantId: 1, namespace: "charges", key: `order-${i}` }, 60_000, leaving.signal),
  );
  await waiters.wait(modest, 60_000, leaving.signal);
  expect(looks).toEqual([1000]);
  waiters.wake(recordName(modest));
  leaving.abort();
  await Promise.allSettled(greedy);
  expect(waiters.count()).toBe(0);
});
