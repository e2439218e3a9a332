import fc from "fast-check";
import { expect, test } from "vitest";
import { joinKey } from "./keys.ts";

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
