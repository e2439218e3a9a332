import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Deadline } from "../domain/operation.ts";
import { createRefreshingCache, type RefreshingCacheOptions } from "./credential-cache.ts";

const PATIENT: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
/** The settings of the credential cache; the contract's bound is 10 s. */
const MAX_AGE_MS = 9000;
const REFRESH_AFTER_MS = 4000;

beforeEach(() => {
  // Only the clock: loads need the real event loop.
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Creates a cache of the values in `known`, and counts its loads. */
function setUp(options: Partial<RefreshingCacheOptions<string, string>> = {}) {
  const known = new Map([["key", "old"]]);
  const load = vi.fn(async (keys: readonly string[]) => {
    const found = new Map<string, string>();
    for (const key of keys) {
      const value = known.get(key);
      if (value !== undefined) found.set(key, value);
    }
    return found;
  });
  const cache = createRefreshingCache<string, string>({
    load,
    maxAgeMs: MAX_AGE_MS,
    maxEntries: 10,
    ...options,
  });
  const { peek, drop } = cache;
  return { known, load, peek, drop, get: (key = "key") => cache.get(key, PATIENT) };
}

/** Waits for background loads. */
async function untilLoaded(load: { mock: { settledResults: readonly unknown[] } }, times: number) {
  await vi.waitUntil(() => load.mock.settledResults.length >= times, 30_000);
  await new Promise((resolve) => setImmediate(resolve));
}

describe("a cached value", () => {
  test("is loaded once while it is fresh", async () => {
    const { load, get } = setUp();
    expect(await Promise.all([get(), get(), get()])).toEqual(["old", "old", "old"]);
    vi.advanceTimersByTime(REFRESH_AFTER_MS - 1);
    expect(await get()).toBe("old");
    expect(load).toHaveBeenCalledTimes(1);
  });

  test("is peeked at while it is fresh and not dropped", async () => {
    const { peek, drop, get } = setUp();
    expect(peek("key")).toBe(undefined);
    await get();
    vi.advanceTimersByTime(REFRESH_AFTER_MS - 1);
    expect(peek("key")).toBe("old");
    drop("key");
    expect(peek("key")).toBe(undefined);
  });

  test("is not peeked at once it needs a reload, which `get` does", async () => {
    const { load, peek, get } = setUp();
    await get();
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    expect(peek("key")).toBe(undefined);
    expect(await get()).toBe("old");
    await untilLoaded(load, 2);
    expect(peek("key")).toBe("old");
  });

  test("is not returned once it has the maximum age", async () => {
    const { known, get } = setUp();
    await get();
    known.set("key", "new");
    vi.advanceTimersByTime(MAX_AGE_MS);
    expect(await get()).toBe("new");
  });

  test("that was deleted from the database is gone once it has the maximum age", async () => {
    const { known, get } = setUp();
    await get();
    known.delete("key");
    vi.advanceTimersByTime(MAX_AGE_MS);
    expect(await get()).toBeUndefined();
  });

  test("is reloaded in the background before that, while callers are answered at once", async () => {
    const { known, load, get } = setUp();
    await get();
    known.set("key", "new");
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    expect(await Promise.all([get(), get()])).toEqual(["old", "old"]);
    await untilLoaded(load, 2);
    expect(await get()).toBe("new");
    expect(load).toHaveBeenCalledTimes(2);
  });

  test("has the age of the start of its load, not of its end", async () => {
    const { known, load, get } = setUp();
    load.mockImplementationOnce(async () => {
      vi.advanceTimersByTime(5000);
      return new Map([["key", "old"]]);
    });
    await get();
    known.set("key", "new");
    vi.advanceTimersByTime(MAX_AGE_MS - 5000);
    expect(await get()).toBe("new");
  });

  test("is returned while loads fail, up to the maximum age", async () => {
    const { load, get } = setUp();
    await get();
    load.mockRejectedValue(new Error("away"));
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    expect(await get()).toBe("old");
    await untilLoaded(load, 2);
    expect(await get()).toBe("old");
    vi.advanceTimersByTime(MAX_AGE_MS - REFRESH_AFTER_MS);
    await expect(get()).rejects.toThrow("away");
  });

  test("is not cached by a load that began before the key was dropped", async () => {
    const { promise: held, resolve: answer } = Promise.withResolvers<void>();
    const values = ["old", "new"];
    const { peek, drop, get } = setUp({
      async load(keys) {
        const value = values.shift() ?? "";
        await held;
        return new Map(keys.map((key) => [key, value]));
      },
    });
    const loading = get();
    // The load has begun.
    await new Promise((resolve) => setImmediate(resolve));
    drop("key");
    answer();
    expect(await loading).toBe("old");
    expect(peek("key")).toBeUndefined();
    expect(await get()).toBe("new");
  });

  test("that is missing is loaded again after a second, because it may have been created", async () => {
    const { known, load, get } = setUp();
    expect(await get("made later")).toBeUndefined();
    vi.advanceTimersByTime(999);
    expect(await get("made later")).toBeUndefined();
    expect(load).toHaveBeenCalledTimes(1);
    known.set("made later", "here");
    vi.advanceTimersByTime(1);
    expect(await get("made later")).toBe("here");
  });

  test("is bounded in number", async () => {
    const { known, load, get } = setUp({ maxEntries: 2 });
    for (const key of ["second", "third"]) known.set(key, "value");
    for (const key of ["key", "second", "third"]) await get(key);
    await get("third");
    expect(load).toHaveBeenCalledTimes(3);
    await get("key");
    expect(load).toHaveBeenCalledTimes(4);
  });

  test("is bounded in bytes", async () => {
    const { known, load, get } = setUp({ maxBytes: 10, bytesOf: ({ length }) => length });
    for (const key of ["second", "third"]) known.set(key, "value");
    for (const key of ["second", "third"]) await get(key);
    expect(load).toHaveBeenCalledTimes(2);
    await get("key");
    await get("second");
    expect(load).toHaveBeenCalledTimes(4);
  });

  test("is not evicted by any number of keys that do not exist", async () => {
    const { load, peek, get } = setUp();
    await get();
    await Promise.all(Array.from({ length: 5000 }, (_, i) => get(`made up ${i}`)));
    expect(peek("key")).toBe("old");
    const loads = load.mock.calls.length;
    await get("made up 0");
    expect(load.mock.calls.length).toBe(loads + 1);
  });

  test("is loaded again once it expires", async () => {
    const endsAtMs = performance.now() + 100;
    const { known, load, peek, get } = setUp({ endsAtMs: () => endsAtMs });
    await get();
    vi.advanceTimersByTime(99);
    expect([peek("key"), await get()]).toEqual(["old", "old"]);
    expect(load).toHaveBeenCalledTimes(1);
    known.delete("key");
    vi.advanceTimersByTime(1);
    expect([peek("key"), await get()]).toEqual([undefined, undefined]);
    expect(load).toHaveBeenCalledTimes(2);
  });
});
