import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Deadline } from "../domain/deadline.ts";
import { createRefreshingCache, type RefreshingCacheOptions } from "./refreshing-cache.ts";

const PATIENT: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
/** As the credentials' cache has them; the bound that the contract publishes is 10 s. */
const MAX_AGE_MS = 9000;
const REFRESH_AFTER_MS = 4000;

beforeEach(() => {
  // Only the clock: loads go on in real turns of the event loop.
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A cache of what `known` says, with each load counted. */
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
    refreshAfterMs: REFRESH_AFTER_MS,
    maxEntries: 10,
    ...options,
  });
  const { peek, drop } = cache;
  return { known, load, peek, drop, get: (key = "key") => cache.get(key, PATIENT) };
}

/** Lets what was begun in the background end. */
async function untilLoaded(load: { mock: { settledResults: readonly unknown[] } }, times: number) {
  await vi.waitUntil(() => load.mock.settledResults.length >= times, 30_000);
  await new Promise((resolve) => setImmediate(resolve));
}

describe("what a cache holds", () => {
  test("is loaded once for as long as it is fresh", async () => {
    const { load, get } = setUp();
    expect(await Promise.all([get(), get(), get()])).toEqual(["old", "old", "old"]);
    vi.advanceTimersByTime(REFRESH_AFTER_MS - 1);
    expect(await get()).toBe("old");
    expect(load).toHaveBeenCalledTimes(1);
  });

  test("is at hand while it is fresh and nobody dropped it", async () => {
    const { peek, drop, get } = setUp();
    expect(peek("key")).toBe(undefined);
    await get();
    vi.advanceTimersByTime(REFRESH_AFTER_MS - 1);
    expect(peek("key")).toBe("old");
    drop("key");
    expect(peek("key")).toBe(undefined);
  });

  test("is not at hand once it has to be loaded anew: then `get` does", async () => {
    const { load, peek, get } = setUp();
    await get();
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    expect(peek("key")).toBe(undefined);
    expect(await get()).toBe("old");
    await untilLoaded(load, 2);
    expect(peek("key")).toBe("old");
  });

  test("is never answered once it is as old as allowed", async () => {
    const { known, get } = setUp();
    await get();
    known.set("key", "new");
    vi.advanceTimersByTime(MAX_AGE_MS);
    expect(await get()).toBe("new");
  });

  test("that was deleted is gone once it is as old as allowed", async () => {
    const { known, get } = setUp();
    await get();
    known.delete("key");
    vi.advanceTimersByTime(MAX_AGE_MS);
    expect(await get()).toBeUndefined();
  });

  test("is loaded anew in the background before that, while callers are answered at once", async () => {
    const { known, load, get } = setUp();
    await get();
    known.set("key", "new");
    vi.advanceTimersByTime(REFRESH_AFTER_MS);
    expect(await Promise.all([get(), get()])).toEqual(["old", "old"]);
    await untilLoaded(load, 2);
    expect(await get()).toBe("new");
    expect(load).toHaveBeenCalledTimes(2);
  });

  test("is as old as the beginning of its load, not its end", async () => {
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

  test("is answered while loading fails, but no longer than allowed", async () => {
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

  test("is not nothing for longer than a second: a key may just have been made", async () => {
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

  test("is not pushed out by keys that do not exist, however many are asked for", async () => {
    const { load, peek, get } = setUp();
    await get();
    await Promise.all(Array.from({ length: 5000 }, (_, i) => get(`made up ${i}`)));
    expect(peek("key")).toBe("old");
    const loads = load.mock.calls.length;
    await get("made up 0");
    expect(load.mock.calls.length).toBe(loads + 1);
  });

  test("is asked of the database again once it ends by itself", async () => {
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
