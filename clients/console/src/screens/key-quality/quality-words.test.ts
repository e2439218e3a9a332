import { create } from "@bufbuild/protobuf";
import { InsufficientDataSchema, KeyDefect } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { describe, expect, test } from "vitest";
import { defectTitle, measureWords, missingWords, placeInterval } from "./quality-words.ts";

describe("The words of key quality", () => {
  test("say what is missing, in days, claims or both", () => {
    const missing = (missingDays: number, missingClaims: bigint) =>
      missingWords(create(InsufficientDataSchema, { missingDays, missingClaims }));
    expect(missing(1, 2_000n)).toBe("needs 1 more day and 2,000 more claims");
    expect(missing(3, 0n)).toBe("needs 3 more days");
    expect(missing(0, 0n)).toBe("more data is needed");
    expect(missingWords(undefined)).toBe("more data is needed");
  });

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
