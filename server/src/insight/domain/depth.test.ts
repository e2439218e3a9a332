import { expect, test } from "vitest";
import { createDepthOf, fingerprintDepth } from "./depth.ts";

/** As `select hashtextextended(key, 81985529216486895)` says: test/store/insight-sample.test.ts asks Postgres. */
const SEED = 81985529216486895n;

test("a key's depth depends on the seed", () => {
  const keys = Array.from({ length: 64 }, (_, i) => `order-${i}`);
  const [one, other] = [createDepthOf(SEED), createDepthOf(SEED + 1n)];
  expect(keys.map(one)).toEqual(keys.map(one));
  expect(keys.map(one)).not.toEqual(keys.map(other));
});

const depthOf = createDepthOf(SEED);

test.each([
  ["key", (i: number) => depthOf(`order-${i}`)],
  ["fingerprint", (i: number) => fingerprintDepth(new Uint8Array(new Uint32Array([i]).buffer))],
])("one %s in 2^s has a depth of at least s", (_, depthOfNumber) => {
  const depths = Array.from({ length: 65_536 }, (_, i) => depthOfNumber(i));
  for (const s of [1, 2, 4, 6]) {
    const expected = depths.length / 2 ** s;
    const found = depths.filter((depth) => depth >= s).length;
    // Five standard deviations.
    expect(Math.abs(found - expected)).toBeLessThan(5 * Math.sqrt(expected));
  }
});
