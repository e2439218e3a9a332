import fc from "fast-check";
import { expect, test } from "vitest";
import { joinKey } from "./join-key.ts";

test("a joined key is readable, and never changes", () => {
  // A record that was claimed under one of these has to be found under it again.
  expect(joinKey("refund", "tx-12", 3)).toBe("refund:tx-12:3");
  expect(joinKey("a:b", "100%", 12n)).toBe("a%3Ab:100%25:12");
  expect(joinKey("export", "x".repeat(255))).toBe("%sha256:1DTVJeV3NcMAspCSpRcI3m9LTnyo2pPgI7V14UFTxEU");
});

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
