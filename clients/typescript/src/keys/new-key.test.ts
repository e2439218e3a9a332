import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newKey } from "./new-key.ts";

const keyTimeMs = (key: string) => Number.parseInt(key.slice(0, 13).replace("-", ""), 16);

/** Each test's time is later than all times of the tests before, because keys never go back. */
let startMs = Date.parse("2030-01-01T00:00:00Z");

beforeEach(() => {
  startMs += 86_400_000;
  vi.useFakeTimers({ toFake: ["Date"], now: startMs });
});

afterEach(() => void vi.useRealTimers());

test("a key is a UUID of version 7 with the time", () => {
  const key = newKey();
  expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(keyTimeMs(key)).toBe(startMs);
});

test("the keys of one millisecond are ordered and different, and their time hardly runs ahead", () => {
  const keys = Array.from({ length: 10_000 }, newKey);
  expect(keys).toEqual([...new Set(keys)].sort());
  // A millisecond has at least 2,048 keys.
  expect(keyTimeMs(keys.at(-1) ?? "")).toBeLessThanOrEqual(startMs + 5);
});

test("keys stay ordered while the clock is a little behind", () => {
  const before = newKey();
  vi.setSystemTime(startMs - 10_000);
  const after = newKey();
  expect(after > before).toBe(true);
  expect(keyTimeMs(after)).toBe(startMs);
});

test("a clock that was far ahead is followed when it is set back", () => {
  newKey();
  vi.setSystemTime(startMs - 10_001);
  expect(keyTimeMs(newKey())).toBe(startMs - 10_001);
});

test("the rest of each key is random", () => {
  const rests = Array.from({ length: 1000 }, () => newKey().slice(19));
  expect(new Set(rests).size).toBe(1000);
});
