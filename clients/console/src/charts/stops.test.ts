import { describe, expect, it } from "vitest";
import { nearestStop, stopAfterKey } from "./scales.ts";

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
