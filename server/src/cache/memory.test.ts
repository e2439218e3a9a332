import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test, vi } from "vitest";
import { createMemoryCache } from "./memory.ts";

const KIB = 1024;
const DAY_MS = 86_400_000;

afterEach(() => {
  vi.useRealTimers();
});

function stopTheClock(): void {
  vi.useFakeTimers();
  // At 0 an entry would have no beginning, and so no end.
  vi.advanceTimersByTime(1);
}

const some = (bytes: number) => Buffer.alloc(bytes, 1);

test("bytes that are kept are found as they were", () => {
  const cache = createMemoryCache(100 * KIB);
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  cache.set("a", bytes, DAY_MS);
  expect([cache.get("a"), cache.get("b")]).toEqual([bytes, undefined]);
});

test("neither the bytes that were given nor those that were found are what is kept", () => {
  const cache = createMemoryCache(100 * KIB);
  const given = some(10);
  cache.set("a", given, DAY_MS);
  given.fill(2);
  cache.get("a")?.fill(3);
  expect(cache.get("a")).toEqual(some(10));
});

test("however many entries come, the bytes stay within the bound", () => {
  const cache = createMemoryCache(100 * KIB);
  for (let i = 0; i < 1000; i++) {
    cache.set(`key-${i}`, some((i * 37) % 5000), DAY_MS);
    expect(cache.bytes()).toBeLessThanOrEqual(100 * KIB);
  }
  expect(cache.bytes()).toBeGreaterThan(80 * KIB);
});

test("names and bytes count against the bound", () => {
  const bytesOf = (name: string, bytes: number) => {
    const cache = createMemoryCache(100 * KIB);
    cache.set(name, some(bytes), DAY_MS);
    return cache.bytes();
  };
  const plain = bytesOf("a", 4);
  expect(bytesOf("a".repeat(101), 4)).toBe(plain + 100);
  expect(bytesOf(`${"a".repeat(100)}☃`, 4)).toBe(plain + 201);
  expect(bytesOf("a", 104)).toBe(plain + 100);
});

test("64 MiB hold 140,000 copies of small results, and take little more than that", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc");
  const used = () => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const cache = createMemoryCache(64 * KIB * KIB);
  const before = used();
  // As long as a name with a key of 24 characters, and a copy with a fingerprint and a payload of 200 bytes.
  for (let i = 0; i < 140_000; i++)
    cache.set(`0:1:7:charges${String(i).padStart(24, "0")}`, Buffer.allocUnsafe(264), DAY_MS);
  expect(used() - before).toBeLessThan(1.15 * cache.bytes());
  expect(cache.get(`0:1:7:charges${"0".repeat(24)}`)).toBeDefined();
});

test("what was used longest ago goes first", () => {
  const cache = createMemoryCache(2 * KIB);
  for (const name of ["a", "b", "c"]) cache.set(name, some(500), DAY_MS);
  expect(cache.get("a")).toBeDefined();
  cache.set("d", some(500), DAY_MS);
  expect(["a", "b", "c", "d"].filter((name) => cache.get(name) !== undefined)).toEqual(["a", "c", "d"]);
});

test("an entry that replaces another counts alone, and one that goes counts no more", () => {
  stopTheClock();
  const cache = createMemoryCache(100 * KIB);
  cache.set("a", some(5000), DAY_MS);
  const before = cache.bytes();
  cache.set("a", some(5000), 1000);
  expect(cache.bytes()).toBe(before);
  vi.advanceTimersByTime(1001);
  expect(cache.get("a")).toBeUndefined();
  expect(cache.bytes()).toBe(0);
});

test("an entry is there until its lifetime is over, used or not", () => {
  stopTheClock();
  const cache = createMemoryCache(100 * KIB);
  cache.set("a", some(1), 1000);
  vi.advanceTimersByTime(999);
  expect(cache.get("a")).toBeDefined();
  vi.advanceTimersByTime(2);
  expect(cache.get("a")).toBeUndefined();
});

test("an entry that alone is larger than the cache is not kept, and pushes nothing out", () => {
  const cache = createMemoryCache(8 * KIB);
  cache.set("a", some(500), DAY_MS);
  cache.set("b", some(9 * KIB), DAY_MS);
  expect([cache.get("a") !== undefined, cache.get("b")]).toEqual([true, undefined]);
});

test("a cache of no bytes keeps nothing", () => {
  const cache = createMemoryCache(0);
  cache.set("a", some(0), DAY_MS);
  expect([cache.get("a"), cache.bytes()]).toEqual([undefined, 0]);
});
