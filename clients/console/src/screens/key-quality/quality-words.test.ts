import { KeyDefect } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { describe, expect, test } from "vitest";
import { defectTitle, measureWords, placeInterval } from "./quality-words.ts";

describe("The words of key quality", () => {
  test("know that a newer server has more defects and measures", () => {
    expect(defectTitle(99 as KeyDefect)).toBe(defectTitle(KeyDefect.UNSPECIFIED));
    expect(measureWords("seen_by_moonlight")).toBe("seen by moonlight");
  });

  test("place an interval inside its picture, however narrow it is", () => {
    expect(placeInterval(0.25, 0.5, 0.75, 100)).toEqual({ from: 25, width: 50, at: 50 });
    expect(placeInterval(1, 1, 1, 100)).toEqual({ from: 99, width: 1, at: 100 });
    expect(placeInterval(0, 0, 0, 100)).toEqual({ from: 0, width: 1, at: 0 });
  });
});
