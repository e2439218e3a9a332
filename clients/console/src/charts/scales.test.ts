import { describe, expect, it } from "vitest";
import {
  decadeTicks,
  durationTicks,
  linearScale,
  logScale,
  nearestStop,
  roundTicks,
  stopAfterKey,
} from "./scales.ts";

describe("scales", () => {
  it("map values to positions and back, also on an axis that points up", () => {
    const scale = linearScale([0, 50], [100, 0]);
    expect(scale.toPosition(25)).toBe(50);
    expect(scale.toValue(50)).toBe(25);
    expect(scale.toValue(-20)).toBe(50);
    expect(scale.toValue(900)).toBe(0);
  });

  it("put equal ratios equally far apart, and 0 at the beginning", () => {
    const scale = logScale([1, 10_000], [0, 400]);
    expect(scale.toPosition(10)).toBeCloseTo(100);
    expect(scale.toPosition(1_000)).toBeCloseTo(300);
    expect(scale.toPosition(0)).toBe(0);
    expect(scale.toValue(200)).toBeCloseTo(100);
    expect(scale.toValue(-5)).toBeCloseTo(1);
    expect(() => logScale([0, 1], [0, 1])).toThrow(RangeError);
  });

  it("of a single value have no division by zero", () => {
    expect(linearScale([0, 0], [0, 10]).toPosition(0)).toBe(0);
    expect(logScale([5, 5], [0, 10]).toValue(3)).toBeCloseTo(5);
  });
});

describe("ticks", () => {
  it.each([
    [0, [0, 1]],
    [1, [0, 1]],
    [6, [0, 2, 4, 6]],
    [817, [0, 500, 1_000]],
    [1_900, [0, 500, 1_000, 1_500, 2_000]],
  ])("of counts up to %d are round, and the last is not below it", (max, ticks) => {
    expect(roundTicks(max)).toEqual(ticks);
  });

  it("of a logarithmic scale are powers of ten", () => {
    expect(decadeTicks(950)).toEqual([1, 10, 100, 1_000]);
    expect(decadeTicks(0)).toEqual([1, 10]);
  });

  it("of durations keep their distance, and the day before others", () => {
    const domain = [1_000, 90 * 86_400_000] as const;
    const wide = durationTicks(domain, logScale(domain, [0, 900]), 50);
    expect(wide).toContain(86_400_000);
    expect(wide.length).toBeGreaterThan(7);
    expect(wide).toEqual([...wide].sort((a, b) => a - b));
    const narrow = durationTicks(domain, logScale(domain, [0, 200]), 50);
    expect(narrow).toContain(86_400_000);
    expect(narrow.length).toBeLessThanOrEqual(5);
  });
});

const STOPS = [1, 10, 100, 1_000, 10_000];

describe("a line at stops", () => {
  it("goes to the nearest one by ratio", () => {
    expect(nearestStop(STOPS, 30)).toBe(10);
    expect(nearestStop(STOPS, 40)).toBe(100);
    expect(nearestStop(STOPS, 0.1)).toBe(1);
    expect(nearestStop([], 7)).toBe(7);
  });

  it("is moved by the keys of a slider, and stays at the ends", () => {
    const after = (key: string, value = 100) => stopAfterKey(STOPS, value, key);
    expect([after("ArrowRight"), after("ArrowUp"), after("ArrowLeft"), after("ArrowDown")]).toEqual([
      1_000, 1_000, 10, 10,
    ]);
    expect([after("Home"), after("End"), after("PageUp"), after("PageDown", 10_000)]).toEqual([
      1, 10_000, 10_000, 10,
    ]);
    expect([after("ArrowRight", 10_000), after("ArrowLeft", 1)]).toEqual([10_000, 1]);
    expect(after("x")).toBeUndefined();
  });

  it("leaves a value between two stops for the next one", () => {
    expect(stopAfterKey(STOPS, 50, "ArrowRight")).toBe(100);
    expect(stopAfterKey(STOPS, 50, "ArrowLeft")).toBe(10);
  });
});
