import { KeyDefect } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { defectTitle, measureWords } from "./key-quality-words.ts";

test("The words of key quality know that a newer server has more defects and measures", () => {
  expect(defectTitle(99 as KeyDefect)).toBe(defectTitle(KeyDefect.UNSPECIFIED));
  expect(measureWords("seen_by_moonlight")).toBe("seen by moonlight");
});
