import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test, vi } from "vitest";
import { createMemoryCache, type MemoryCache, type NameHash, SECTION_BYTES } from "./memory.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const DAY_MS = 86_400_000;

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const some = (bytes: number) => Buffer.alloc(bytes, 1);

test("returns the bytes that were stored", () => {
  const cache = createMemoryCache(MIB);
  const bytes = Buffer.from(Array.from({ length: 255 }, (_, byte) => byte));
  cache.set("a", bytes, DAY_MS);
  cache.set("none", some(0), DAY_MS);
  expect([cache.get("a"), cache.get("none"), cache.get("b")]).toEqual([bytes, some(0), undefined]);
});

test("keeps its own bytes: changing the stored or the returned buffer changes nothing", () => {
  const cache = createMemoryCache(MIB);
  const given = some(10);
  cache.set("a", given, DAY_MS);
  given.fill(2);
  cache.get("a")?.fill(3);
  expect(cache.get("a")).toEqual(some(10));
});

test("a returned buffer stays unchanged when another entry takes the memory", () => {
  const cache = createMemoryCache(MIB);
  cache.set("a", some(1000), DAY_MS);
  const found = cache.get("a");
  for (let i = 0; i < 4000; i++) cache.set(`key-${i}`, Buffer.alloc(1000, 2), DAY_MS);
  expect(cache.get("a")).toBeUndefined();
  expect(found).toEqual(some(1000));
});

test("names that differ in any character or in length are different", () => {
  const cache = createMemoryCache(MIB);
  const names = [
    "",
    "\0",
    "a",
    "a\0",
    "\0a",
    "aaaa",
    "aaaa\0",
    "é",
    "Ã©",
    "☃",
    "\x03",
    "\u{1f600}",
    "\ufffd",
  ];
  for (const name of names) cache.set(name, Buffer.from(`of ${name}`), DAY_MS);
  expect(names.map((name) => cache.get(name)?.toString())).toEqual(names.map((name) => `of ${name}`));
});

test("names with half a surrogate pair and names that are too long are not stored", () => {
  const cache = createMemoryCache(MIB);
  for (const name of ["\ud800", "\ufffd", "a".repeat(2000)]) cache.set(name, Buffer.from("kept"), DAY_MS);
  expect(["\ud800", "\udfff", "a".repeat(2000)].map((name) => cache.get(name))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("names with the same hash stay separate when one of their entries is replaced or evicted", () => {
  const cache = createMemoryCache(MIB, () => 7);
  for (const name of ["a", "b", "c"]) cache.set(name, Buffer.from(`of ${name}`), DAY_MS);
  cache.set("b", Buffer.from("another of b"), DAY_MS);
  cache.set("c", some(MIB), DAY_MS);
  expect(["a", "b", "c", "d"].map((name) => cache.get(name)?.toString())).toEqual([
    "of a",
    "another of b",
    undefined,
    undefined,
  ]);
});

test("only a few names with the same hash are stored, so that no lookup passes many entries", () => {
  const cache = createMemoryCache(MIB, () => 7);
  for (let i = 0; i < 1000; i++) cache.set(`key-${i}`, some(10), DAY_MS);
  const found = Array.from({ length: 1000 }, (_, i) => i).filter((i) => cache.get(`key-${i}`) !== undefined);
  expect(found.length).toBeGreaterThan(20);
  expect(found.length).toBeLessThan(40);
  expect(found.at(-1)).toBe(999);
});

test("memory stays within the bound for any number and size of entries", () => {
  const cache = createMemoryCache(2 * MIB);
  for (let i = 0; i < 5000; i++) {
    cache.set(`key-${i}`, some((i * 37) % 9000), DAY_MS);
    if (i % 3 === 0) cache.get(`key-${(i * 7) % 5000}`);
    expect(cache.bytes()).toBeLessThanOrEqual(2 * MIB);
  }
  expect(cache.bytes()).toBeGreaterThan(1.7 * MIB);
});

test("memory grows with the entries", () => {
  const cache = createMemoryCache(64 * MIB);
  expect(cache.bytes()).toBe(0);
  for (let i = 0; i < 1000; i++) cache.set(`key-${i}`, some(1000), DAY_MS);
  expect(cache.bytes()).toBeLessThan(2 * MIB);
});

test("64 MiB hold 160,000 completions with small results, almost entirely outside V8's heap", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc");
  const used = () => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { heapUsed, arrayBuffers };
  };
  const before = used();
  const cache = createMemoryCache(64 * MIB);
  // The lengths of a name with a key of 60 characters and of a completion with a fingerprint and a payload of
  // 200 bytes.
  const nameOf = (i: number) => `${"s".repeat(22)}:7:charges${String(i).padStart(60, "0")}`;
  const content = some(264);
  for (let i = 0; i < 160_000; i++) cache.set(nameOf(i), content, DAY_MS);
  const after = used();
  expect(after.heapUsed - before.heapUsed).toBeLessThan(MIB);
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(66 * MIB);
  expect(Array.from({ length: 160_000 }, (_, i) => cache.get(nameOf(i))).includes(undefined)).toBe(false);
});

/** Returns how many different keys a cache stores before it evicts the first one. */
function fill(cache: MemoryCache, use: (i: number) => void = () => {}): number {
  cache.set("first", some(1000), DAY_MS);
  for (let i = 0; i < 10_000; i++) {
    cache.set(`key-${i}`, some(1000), DAY_MS);
    use(i);
  }
  return Array.from({ length: 10_000 }, (_, i) => i).findIndex((i) => cache.get(`key-${i}`) !== undefined);
}

test("the oldest entries are evicted first", () => {
  const cache = createMemoryCache(4 * MIB);
  const oldest = fill(cache);
  // Of 4 MiB, fewer than two sections are not full.
  expect(10_000 - oldest).toBeGreaterThan((4 * MIB - 2 * SECTION_BYTES) / 1100);
  for (let i = 0; i < 10_000; i++) expect(cache.get(`key-${i}`) !== undefined).toBe(i >= oldest);
});

test("an entry that is read often survives all other writes", () => {
  const cache = createMemoryCache(4 * MIB);
  fill(cache, (i) => {
    if (i % 1000 === 0) expect(cache.get("first")).toEqual(some(1000));
  });
  expect(cache.get("first")).toEqual(some(1000));
});

test("an entry that is no longer read is evicted, however often it was read before", () => {
  const cache = createMemoryCache(4 * MIB);
  fill(cache, (i) => {
    if (i < 1000) cache.get("first");
  });
  expect(cache.get("first")).toBeUndefined();
});

test("new entries find room in a cache whose entries were all read", () => {
  const cache = createMemoryCache(4 * MIB);
  fill(cache, (i) => {
    for (let j = Math.max(0, i - 5000); j <= i; j += 100) cache.get(`key-${j}`);
    cache.get(`key-${i}`);
    expect(cache.get(`key-${Math.max(0, i - 500)}`)).toBeDefined();
  });
});

test("an entry expires at the end of its lifetime, read or not", () => {
  vi.useFakeTimers();
  const cache = createMemoryCache(MIB);
  cache.set("a", some(1), 1000);
  vi.advanceTimersByTime(999);
  expect(cache.get("a")).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(cache.get("a")).toBeUndefined();
});

test("a replaced entry's lifetime ends with it", () => {
  vi.useFakeTimers();
  const cache = createMemoryCache(MIB);
  cache.set("a", some(1), 1000);
  cache.set("a", some(1), 3000);
  vi.advanceTimersByTime(2999);
  expect(cache.get("a")).toBeDefined();
});

test("an entry that is too large is not stored, evicts nothing and removes the previous one", () => {
  const cache = createMemoryCache(MIB);
  for (const name of ["a", "b"]) cache.set(name, some(500), DAY_MS);
  cache.set("b", some(SECTION_BYTES / 4), DAY_MS);
  expect([cache.get("a") !== undefined, cache.get("b")]).toEqual([true, undefined]);
  cache.set("c", some(SECTION_BYTES / 4 - 100), DAY_MS);
  expect(cache.get("c")).toHaveLength(SECTION_BYTES / 4 - 100);
});

test.each([0, 1, 100 * KIB])("a cache without room for a section (%i bytes) stores nothing", (maxBytes) => {
  const cache = createMemoryCache(maxBytes);
  cache.set("a", some(0), DAY_MS);
  expect([cache.get("a"), cache.bytes()]).toEqual([undefined, 0]);
});

test("a cache that the system refuses memory stores nothing and does not fail", () => {
  const cache = createMemoryCache(MIB);
  class Refused {
    constructor() {
      throw new RangeError("Array buffer allocation failed");
    }
  }
  vi.stubGlobal("SharedArrayBuffer", Refused);
  cache.set("a", some(1), DAY_MS);
  expect([cache.get("a"), cache.bytes()]).toEqual([undefined, 0]);
});

/** Returns a generator of numbers from 0 to below 1 (Mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Written {
  readonly value: number;
  readonly length: number;
  readonly endsAtMs: number;
  /** Bytes that had been written before. */
  readonly after: number;
}

/**
 * Gets and sets at random. Every hit must be the last value written under the name, and new entries must be
 * found.
 */
function compareWithModel(cache: MemoryCache, operations: number, safeBytes: number): void {
  const random = createRandom(operations);
  const model = new Map<string, Written>();
  let written = 0;
  for (let i = 0; i < operations; i++) {
    if (i % 1000 === 0) vi.advanceTimersByTime(100);
    // Some names are read more often than others.
    const number = Math.floor(random() ** 2 * 20_000);
    const name = `${number % 3 === 0 ? "clé" : "key"}-${number}`;
    if (random() < 0.4) {
      const length = 5 + Math.floor(random() ** 4 * 4000);
      const lifetimeMs = random() < 0.1 ? 500 : DAY_MS;
      const bytes = Buffer.alloc(length, i & 0xff);
      bytes.writeUInt32LE(i);
      cache.set(name, bytes, lifetimeMs);
      written += length + 100;
      model.set(name, { value: i, length, endsAtMs: performance.now() + lifetimeMs, after: written });
      continue;
    }
    const found = cache.get(name);
    const last = model.get(name);
    if (found === undefined) {
      const isSafe =
        last !== undefined && last.endsAtMs > performance.now() && written - last.after < safeBytes;
      if (isSafe) throw new Error(`operation ${i}: ${name} is lost`);
    } else if (last === undefined || last.endsAtMs <= performance.now()) {
      throw new Error(`operation ${i}: ${name} is still there`);
    } else {
      const { value, length } = last;
      const isWhole = found.at(-1) === (value & 0xff);
      if (found.length !== length || found.readUInt32LE() !== value || !isWhole)
        throw new Error(`operation ${i}: ${name} has the content of another`);
    }
  }
}

test("75,000 gets and sets at random are answered like by a map, but for evicted entries", {
  timeout: 60_000,
}, () => {
  vi.useFakeTimers();
  // A quarter of each section, except one, is for new entries.
  compareWithModel(createMemoryCache(4 * MIB), 75_000, (4 * MIB) / 4 - 3 * SECTION_BYTES);
});

test("many names with the same hash are never confused", () => {
  vi.useFakeTimers();
  const hash: NameHash = (view, length) => view.getUint8(length - 1) & 7;
  compareWithModel(createMemoryCache(MIB, hash), 25_000, 0);
});
