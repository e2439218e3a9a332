import { expect, it } from "vitest";
import { refusalWords } from "./refusals.ts";

it("each reason of a refusal is named with its count", () => {
  const none = {
    refusedByRate: 0n,
    refusedByConcurrency: 0n,
    refusedByRecords: 0n,
    refusedByBytes: 0n,
    lateKeysRefused: 0n,
    mismatches: 0n,
    fenced: 0n,
    wouldBeRefused: 0n,
  };
  expect(refusalWords(none)).toEqual([]);
  expect(refusalWords({ ...none, refusedByRate: 8164n, lateKeysRefused: 11, wouldBeRefused: 1n })).toEqual([
    "8,164 refused by the rate limit",
    "11 refused because the key is too old",
    "1 beyond a quota that only counts",
  ]);
});
