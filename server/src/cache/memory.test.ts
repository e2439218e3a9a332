import { afterEach, expect, test, vi } from "vitest";
import { recordIn } from "../../../test/helpers/domain.ts";
import type { LiveRecord, Result } from "../domain/record.ts";
import { createMemoryCache } from "./memory.ts";

const KIB = 1024;
const DAY_MS = 86_400_000;

afterEach(() => {
  vi.useRealTimers();
});

function withResult(result: Partial<Result>, fields: Partial<LiveRecord> = {}): LiveRecord {
  const record = recordIn("completed", fields);
  if (record.phase.kind !== "completed" || record.phase.result === undefined) throw new Error("no result");
  return { ...record, phase: { ...record.phase, result: { ...record.phase.result, ...result } } };
}

const withPayload = (bytes: number) => withResult({ payload: Buffer.alloc(bytes, 1) });

test("a record that is kept is found, equal to what it was", () => {
  const cache = createMemoryCache(100 * KIB);
  const record = withResult({ metadata: { trace: "1" } }, { fingerprint: Buffer.alloc(32, 7) });
  cache.set("a", record, DAY_MS);
  const found = cache.get("a");
  expect(found).toMatchObject({ ...record, phase: expect.anything(), fingerprint: expect.anything() });
  expect(Buffer.from(found?.fingerprint ?? [])).toEqual(record.fingerprint);
  expect(cache.get("b")).toBeUndefined();
});

test("however many records come, the bytes stay within the bound", () => {
  const cache = createMemoryCache(100 * KIB);
  for (let i = 0; i < 1000; i++) {
    cache.set(`key-${i}`, withPayload((i * 37) % 5000), DAY_MS);
    expect(cache.bytes()).toBeLessThanOrEqual(100 * KIB);
  }
  expect(cache.bytes()).toBeGreaterThan(80 * KIB);
});

test("names, texts and metadata count against the bound", () => {
  const bytesOf = (name: string, record: LiveRecord) => {
    const cache = createMemoryCache(100 * KIB);
    cache.set(name, record, DAY_MS);
    return cache.bytes();
  };
  const plain = bytesOf("a", withResult({}));
  expect(bytesOf("a".repeat(101), withResult({}))).toBe(plain + 200);
  expect(bytesOf("a", withResult({ payload: Buffer.alloc(104) }))).toBe(plain + 100);
  expect(bytesOf("a", withResult({ contentType: "x".repeat(100) }))).toBe(plain + 200);
  expect(bytesOf("a", withResult({ metadata: { ab: "c".repeat(98) } }))).toBe(plain + 200);
  expect(bytesOf("a", withResult({}, { owner: "w".repeat(108) }))).toBe(plain + 200);
});

test("what was used longest ago goes first", () => {
  const cache = createMemoryCache(8 * KIB);
  for (const name of ["a", "b", "c"]) cache.set(name, withPayload(500), DAY_MS);
  expect(cache.get("a")).toBeDefined();
  cache.set("d", withPayload(500), DAY_MS);
  expect(["a", "b", "c", "d"].filter((name) => cache.get(name) !== undefined)).toEqual(["a", "c", "d"]);
});

test("a record that replaces another counts alone, and one that goes counts no more", () => {
  vi.useFakeTimers();
  const cache = createMemoryCache(100 * KIB);
  cache.set("a", withPayload(5000), DAY_MS);
  const before = cache.bytes();
  cache.set("a", withPayload(5000), 1000);
  expect(cache.bytes()).toBe(before);
  vi.advanceTimersByTime(1000);
  expect(cache.get("a")).toBeUndefined();
  expect(cache.bytes()).toBe(0);
});

test("a record is there until its lifetime is over, used or not", () => {
  vi.useFakeTimers();
  const cache = createMemoryCache(100 * KIB);
  cache.set("a", withPayload(1), 1000);
  vi.advanceTimersByTime(999);
  expect(cache.get("a")).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(cache.get("a")).toBeUndefined();
});

test("a record that alone is larger than the cache is not kept, and pushes nothing out", () => {
  const cache = createMemoryCache(8 * KIB);
  cache.set("a", withPayload(500), DAY_MS);
  cache.set("b", withPayload(9 * KIB), DAY_MS);
  expect([cache.get("a") !== undefined, cache.get("b")]).toEqual([true, undefined]);
});

test("a cache of no bytes keeps nothing", () => {
  const cache = createMemoryCache(0);
  cache.set("a", withPayload(0), DAY_MS);
  expect([cache.get("a"), cache.bytes()]).toEqual([undefined, 0]);
});

test("a payload that is part of a larger buffer doesn't keep that alive", () => {
  const cache = createMemoryCache(100 * KIB);
  const read = Buffer.alloc(64 * KIB);
  cache.set("a", withResult({ payload: read.subarray(10, 20) }), DAY_MS);
  const { phase } = cache.get("a") ?? {};
  const payload = phase?.kind === "completed" ? phase.result?.payload : undefined;
  expect(payload?.buffer.byteLength).toBe(10);
});
