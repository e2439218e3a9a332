import { expect, test } from "vitest";
import { createFairQueue, type FairQueue } from "./fair-queue.ts";

const MAX_ITEMS = 100;

function newQueue(
  weights: Readonly<Record<number, number>> = {},
  places: Readonly<Record<number, number>> = {},
): FairQueue<string> {
  return createFairQueue({
    maxItems: MAX_ITEMS,
    weightOf: (tenant) => weights[tenant] ?? 1,
    maxInFlightOf: (tenant) => places[tenant] ?? MAX_ITEMS,
  });
}

/** Queues `count` items of a tenant: `1a`, `1b` and so on; answers how many it took. */
function pushMany(queue: FairQueue<string>, tenant: number, count: number): number {
  const pushed = Array.from({ length: count }, (_, i) =>
    queue.push(tenant, `${tenant}${"abcdefghij"[i % 10]}`),
  );
  return pushed.filter(Boolean).length;
}

/** Takes up to so many. */
function takeUpTo(queue: FairQueue<string>, count: number): string {
  const taken: string[] = [];
  queue.take((item) => {
    if (taken.length >= count) return "stays";
    taken.push(item);
    return "taken";
  });
  return taken.join(" ");
}

test("tenants take turns, however many items each has", () => {
  const queue = newQueue();
  pushMany(queue, 1, 6);
  pushMany(queue, 2, 2);
  pushMany(queue, 3, 3);
  expect(takeUpTo(queue, 9)).toBe("1a 2a 3a 1b 2b 3b 1c 3c 1d");
  expect(takeUpTo(queue, 9)).toBe("1e 1f");
  expect(queue.size).toBe(0);
});

test("a tenant has as many items taken in its turn as its weight", () => {
  const queue = newQueue({ 2: 3 });
  pushMany(queue, 1, 9);
  pushMany(queue, 2, 9);
  expect(takeUpTo(queue, 8)).toBe("1a 2a 2b 2c 1b 2d 2e 2f");
});

test("a turn that was cut short goes on the next time", () => {
  const queue = newQueue({ 1: 4 });
  pushMany(queue, 1, 9);
  pushMany(queue, 2, 9);
  expect(takeUpTo(queue, 3)).toBe("1a 1b 1c");
  expect(takeUpTo(queue, 4)).toBe("1d 2a 1e 1f");
});

test("with more tenants than are taken, each has its turn before any has a second one", () => {
  const queue = newQueue();
  for (const tenant of [1, 2, 3, 4, 5]) pushMany(queue, tenant, 2);
  expect(takeUpTo(queue, 3)).toBe("1a 2a 3a");
  expect(takeUpTo(queue, 3)).toBe("4a 5a 1b");
  expect(takeUpTo(queue, 9)).toBe("2b 3b 4b 5b");
});

test("what stays keeps its place, and costs its tenant nothing", () => {
  const queue = newQueue();
  pushMany(queue, 1, 4);
  pushMany(queue, 2, 1);
  const offered: string[] = [];
  queue.take((item) => {
    offered.push(item);
    if (item === "1b") return "free";
    return item === "1d" || item === "2a" ? "taken" : "stays";
  });
  expect(offered.join(" ")).toBe("1a 1b 1c 1d 2a");
  queue.push(1, "1e");
  expect(takeUpTo(queue, 9)).toBe("1a 1c 1e");
});

test("a tenant may queue as much as it leaves free, and so there is always room for another", () => {
  const queue = newQueue();
  expect(pushMany(queue, 1, MAX_ITEMS)).toBe(MAX_ITEMS / 2);
  expect(pushMany(queue, 2, MAX_ITEMS)).toBe(MAX_ITEMS / 4);
  expect(pushMany(queue, 3, 10)).toBe(10);
  takeUpTo(queue, MAX_ITEMS);
  expect(pushMany(queue, 1, MAX_ITEMS)).toBe(MAX_ITEMS / 2);
});

test("a tenant has no more items taken than it has places, until one of them is done with", () => {
  const queue = newQueue({}, { 1: 3 });
  pushMany(queue, 1, 6);
  pushMany(queue, 2, 4);
  expect(takeUpTo(queue, 9)).toBe("1a 2a 1b 2b 1c 2c 2d");
  pushMany(queue, 2, 2);
  expect(takeUpTo(queue, 9)).toBe("2a 2b");
  expect(queue.size).toBe(3);
  queue.done(1);
  queue.done(1);
  expect(takeUpTo(queue, 9)).toBe("1d 1e");
  for (let i = 0; i < 3; i++) queue.done(1);
  expect(takeUpTo(queue, 9)).toBe("1f");
  expect(queue.size).toBe(0);
});

test("items that leave for nothing need no place, and what stays before others stays before them", () => {
  const queue = newQueue({}, { 1: 2 });
  pushMany(queue, 1, 6);
  queue.take((item) => (item === "1a" ? "stays" : item === "1b" ? "free" : "taken"));
  expect(queue.size).toBe(3);
  queue.done(1);
  queue.done(1);
  expect(takeUpTo(queue, 9)).toBe("1a 1e");
});

test("a tenant whose places became fewer than it has taken waits until they are free", () => {
  const places: Record<number, number> = { 1: 3 };
  const queue = newQueue({}, places);
  pushMany(queue, 1, 5);
  expect(takeUpTo(queue, 9)).toBe("1a 1b 1c");
  places[1] = 1;
  queue.done(1);
  queue.done(1);
  expect(takeUpTo(queue, 9)).toBe("");
  queue.done(1);
  expect(takeUpTo(queue, 9)).toBe("1d");
});
