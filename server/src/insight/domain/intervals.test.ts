import { describe, expect, test } from "vitest";
import { observationsNeeded, shareInterval, shareUpperBound, sumInterval } from "./intervals.ts";
import { gammaProbability, logGamma } from "./special-functions.ts";

describe("the interval of a share", () => {
  // Tables of Clopper-Pearson intervals at 95 %, such as those of R's binom.test.
  test.each([
    [0, 10, 0, 0.3085],
    [1, 10, 0.0025, 0.445],
    [5, 10, 0.1871, 0.8129],
    [10, 10, 0.6915, 1],
    [2, 100, 0.0024, 0.0704],
    [50, 1000, 0.0373, 0.0654],
  ])("of %i in %i is that of Clopper and Pearson", (hits, trials, low, high) => {
    const interval = shareInterval(hits, trials, 0.95);
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  });
});

describe("observations needed", () => {
  test.each([
    [1e-4, 29_956],
    [0.05, 59],
    [0.01, 299],
    [1e-6, 2_995_731],
  ])("to say with 95 %% that a share is at most %d", (share, observations) => {
    expect(observationsNeeded(share, 0.95)).toBe(observations);
    expect(shareUpperBound(0, observations, 0.95)).toBeLessThanOrEqual(share);
    expect(shareUpperBound(0, observations - 1, 0.95)).toBeGreaterThan(share);
  });
});

describe("the interval of a sum", () => {
  // Garwood's exact limits of a Poisson mean at 95 %.
  test.each([
    [0, 0, 3.68888],
    [1, 0.025318, 5.5716],
    [10, 4.7954, 18.3904],
    [100, 81.3637, 121.6268],
    [10_000, 9804.95, 10_197.95],
  ])("of %i events of weight 1 is the exact one of Poisson events", (events, low, high) => {
    const interval = sumInterval({ sum: events, squares: events, largest: 1 }, 0.95);
    expect(interval.low / Math.max(low, 1e-9)).toBeCloseTo(low === 0 ? 0 : 1, 3);
    expect(interval.high / high).toBeCloseTo(1, 3);
  });

  test("of equal weights is in proportion to them", () => {
    const one = sumInterval({ sum: 10, squares: 10, largest: 1 }, 0.95);
    const eight = sumInterval({ sum: 80, squares: 640, largest: 8 }, 0.95);
    expect(eight.low).toBeCloseTo(8 * one.low, 6);
    expect(eight.high).toBeCloseTo(8 * one.high, 6);
  });

  test("is wider if the same sum comes in fewer, larger events", () => {
    const many = sumInterval({ sum: 1000, squares: 1000, largest: 1 }, 0.95);
    const few = sumInterval({ sum: 1000, squares: 500_000, largest: 500 }, 0.95);
    expect(few.low).toBeLessThan(many.low);
    expect(few.high).toBeGreaterThan(many.high);
  });
});

test("the gamma function and its distribution have their known values", () => {
  expect(Math.exp(logGamma(6))).toBeCloseTo(120, 8);
  expect(Math.exp(logGamma(0.5))).toBeCloseTo(Math.sqrt(Math.PI), 10);
  expect(gammaProbability(1, 2)).toBeCloseTo(1 - Math.exp(-2), 12);
  expect(gammaProbability(10, 25)).toBeCloseTo(0.999779, 6);
});
