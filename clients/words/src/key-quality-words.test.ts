import { create } from "@bufbuild/protobuf";
import { KeyDefect, KeyQualitySchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { defectTitle, measureWords, suspicionsOf } from "./key-quality-words.ts";

test("The words of key quality know that a newer server has more defects and measures", () => {
  expect(defectTitle(99 as KeyDefect)).toBe(defectTitle(KeyDefect.UNSPECIFIED));
  expect(measureWords("seen_by_moonlight")).toBe("seen by moonlight");
});

test("Late duplicates are apart from what is suspected of the keys", () => {
  const suspicions = [{ defect: KeyDefect.TIME_IN_KEY }, { defect: KeyDefect.REPEATS_AFTER_EXPIRY }];
  const { ofKeys, late } = suspicionsOf(create(KeyQualitySchema, { suspicions }));
  expect(ofKeys.map(({ defect }) => defect)).toEqual([KeyDefect.TIME_IN_KEY]);
  expect(late?.defect).toBe(KeyDefect.REPEATS_AFTER_EXPIRY);
});
