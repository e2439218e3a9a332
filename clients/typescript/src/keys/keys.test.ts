import fc from "fast-check";
import { expect, test } from "vitest";
import { deriveKey, joinKey, looksLikeTimestamp } from "./keys.ts";

test("no two different tuples share a key, and every key fits", () => {
  // Few and telling characters, so that tuples that could be mistaken for each other come up.
  const part = fc.string({ unit: fc.constantFrom("a", ":", "%", "3", "A", "sha256"), maxLength: 60 });
  const tuple = fc.array(part, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(tuple, tuple, (one, other) => {
      const same = JSON.stringify(one) === JSON.stringify(other);
      expect(joinKey(...one) === joinKey(...other)).toBe(same);
      expect(Buffer.byteLength(joinKey(...one))).toBeLessThanOrEqual(255);
    }),
    { numRuns: 500 },
  );
});

test("the key of a long tuple can't be made of a short one", () => {
  const long = joinKey("export", "x".repeat(255));
  expect(joinKey(long)).not.toBe(long);
  expect(joinKey(...long.split(":"))).not.toBe(long);
});

test.each([
  ["no parts", []],
  ["a fraction", [0.1]],
  ["a number beyond exact integers", [2 ** 53]],
  ["a lone surrogate", ["\ud800"]],
])("%s is refused by name", (_, parts) => {
  expect(() => joinKey(...parts)).toThrow(
    expect.objectContaining({
      name: "InvalidRequestError",
      violations: [{ field: "key", description: expect.any(String) }],
    }),
  );
});

test("a derived key is 43 characters that any downstream accepts", () => {
  expect(deriveKey("charges", "x".repeat(255), "stripe")).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test("different divisions of a text give different keys", () => {
  const parts = [
    ["ab", "c", "d"],
    ["a", "bc", "d"],
    ["a", "b", "cd"],
    ["a", "bcd", ""],
    ["a", "1:b", "cd"],
  ] as const;
  expect(new Set(parts.map(([namespace, key, label]) => deriveKey(namespace, key, label))).size).toBe(
    parts.length,
  );
});

test.each([
  ["what Date.now() gives", String(Date.now()), true],
  ["what toISOString() gives", "2026-11-20T13:00:07.123Z", true],
  ["the same with an offset", "2026-11-20T14:00:07.123456+01:00", true],
  ["the moment at which a job is due", "2026-11-20T00:00:00.000Z", false],
  ["the same without a fraction", "2026-11-20T00:00:00Z", false],
  ["a day", "2026-11-20", false],
  ["a number of 13 digits that is nowhere near now", "4006381333931", false],
  ["a shorter number", "1700000000", false],
  ["a key with a moment in it", `order-${Date.now()}`, false],
  ["a UUID", "018f4d5e-7c3b-7a2e-9c1d-2b3a4c5d6e7f", false],
])("whether %s looks as if it were made of the clock", (_, key, expected) => {
  expect(looksLikeTimestamp(key)).toBe(expected);
});
