import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

const MAX_ITEMS = 100;

function newQueue(
  weights: Readonly<Record<number, number>> = {},
  maxInFlight: Readonly<Record<number, number>> = {},
): FairQueue<string> {
  return new FairQueue({
    maxItems: MAX_ITEMS,
    weightOf: (tenant) => weights[tenant] ?? 1,
    maxInFlightOf: (tenant) => maxInFlight[tenant] ?? MAX_ITEMS,
  });
}

/** Pushes `count` items of a tenant: `1a`, `1b` and so on. Returns how many the queue accepted. */
function pushMany(queue: FairQueue<string>, tenant: number, count: number): number {
  const pushed = Array.from({ length: count }, (_, i) =>
    queue.push(tenant, `${tenant}${"abcdefghij"[i % 10]}`),
  );
  return pushed.filter(Boolean).length;
}

/** Takes up to `count` items. */
function takeUpTo(queue: FairQueue<string>, count: number): string {
  const taken: string[] = [];
  queue.take((item) => {
    if (taken.length >= count) return "keep";
    taken.push(item);
    return "take";
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

test("a tenant's turn takes as many items as its weight", () => {
  const queue = newQueue({ 2: 3 });
  pushMany(queue, 1, 9);
  pushMany(queue, 2, 9);
  expect(takeUpTo(queue, 8)).toBe("1a 2a 2b 2c 1b 2d 2e 2f");
});

test("a turn that was cut short continues in the next call", () => {
  const queue = newQueue({ 1: 4 });
  pushMany(queue, 1, 9);
  pushMany(queue, 2, 9);
  expect(takeUpTo(queue, 3)).toBe("1a 1b 1c");
  expect(takeUpTo(queue, 4)).toBe("1d 2a 1e 1f");
});

test("with more tenants than items taken, each tenant has a turn before any has a second one", () => {
  const queue = newQueue();
  for (const tenant of [1, 2, 3, 4, 5]) pushMany(queue, tenant, 2);
  expect(takeUpTo(queue, 3)).toBe("1a 2a 3a");
  expect(takeUpTo(queue, 3)).toBe("4a 5a 1b");
  expect(takeUpTo(queue, 9)).toBe("2b 3b 4b 5b");
});

test("kept and removed items cost their tenant nothing, and kept items stay in order", () => {
  const queue = newQueue();
  pushMany(queue, 1, 4);
  pushMany(queue, 2, 1);
  const decided: string[] = [];
  queue.take((item) => {
    decided.push(item);
    if (item === "1b") return "remove";
    return item === "1d" || item === "2a" ? "take" : "keep";
  });
  expect(decided.join(" ")).toBe("1a 1b 1c 1d 2a");
  queue.push(1, "1e");
  expect(takeUpTo(queue, 9)).toBe("1a 1c 1e");
});

test("a tenant may queue as many items as it leaves free, so another tenant always finds room", () => {
  const queue = newQueue();
  expect(pushMany(queue, 1, MAX_ITEMS)).toBe(MAX_ITEMS / 2);
  expect(pushMany(queue, 2, MAX_ITEMS)).toBe(MAX_ITEMS / 4);
  expect(pushMany(queue, 3, 10)).toBe(10);
  takeUpTo(queue, MAX_ITEMS);
  expect(pushMany(queue, 1, MAX_ITEMS)).toBe(MAX_ITEMS / 2);
});

test("a tenant at its maximum in flight gets no more items until one is released", () => {
  const queue = newQueue({}, { 1: 3 });
  pushMany(queue, 1, 6);
  pushMany(queue, 2, 4);
  expect(takeUpTo(queue, 9)).toBe("1a 2a 1b 2b 1c 2c 2d");
  pushMany(queue, 2, 2);
  expect(takeUpTo(queue, 9)).toBe("2a 2b");
  expect(queue.size).toBe(3);
  queue.release(1);
  queue.release(1);
  expect(takeUpTo(queue, 9)).toBe("1d 1e");
  for (let i = 0; i < 3; i++) queue.release(1);
  expect(takeUpTo(queue, 9)).toBe("1f");
  expect(queue.size).toBe(0);
});

test("removed items do not count as in flight, and a kept item stays before later ones", () => {
  const queue = newQueue({}, { 1: 2 });
  pushMany(queue, 1, 6);
  queue.take((item) => (item === "1a" ? "keep" : item === "1b" ? "remove" : "take"));
  expect(queue.size).toBe(3);
  queue.release(1);
  queue.release(1);
  expect(takeUpTo(queue, 9)).toBe("1a 1e");
});

test("a tenant above a lowered maximum in flight waits until enough items are released", () => {
  const maxInFlight: Record<number, number> = { 1: 3 };
  const queue = newQueue({}, maxInFlight);
  pushMany(queue, 1, 5);
  expect(takeUpTo(queue, 9)).toBe("1a 1b 1c");
  maxInFlight[1] = 1;
  queue.release(1);
  queue.release(1);
  expect(takeUpTo(queue, 9)).toBe("");
  queue.release(1);
  expect(takeUpTo(queue, 9)).toBe("1d");
});

test("items that wait because their tenant has its limit in flight are reported, each once", () => {
  const held: string[] = [];
  const queue = new FairQueue<string>({
    maxItems: MAX_ITEMS,
    weightOf: () => 1,
    maxInFlightOf: (tenant) => (tenant === 1 ? 2 : MAX_ITEMS),
    onHeld: (tenant, items) => held.push(`${tenant}: ${items}`),
  });
  pushMany(queue, 1, 5);
  pushMany(queue, 2, 5);
  expect(takeUpTo(queue, 4)).toBe("1a 2a 1b 2b");
  // Tenant 2's items wait for the next statement, not for its limit.
  expect(held).toEqual(["1: 3"]);
  takeUpTo(queue, 0);
  expect(held).toEqual(["1: 3"]);
  pushMany(queue, 1, 2);
  takeUpTo(queue, 0);
  queue.release(1);
  takeUpTo(queue, 9);
  expect(held).toEqual(["1: 3", "1: 2"]);
});
