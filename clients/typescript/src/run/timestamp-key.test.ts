import { expect, test } from "vitest";
import { looksLikeTimestamp } from "./timestamp-key.ts";

test.each([
  ["what Date.now() gives", String(Date.now()), true],
  ["what toISOString() gives", "2026-11-20T13:00:07.123Z", true],
  ["the same with an offset", "2026-11-20T14:00:07.123456+01:00", true],
  ["the moment at which a job is due", "2026-11-20T00:00:00.000Z", false],
  ["the same without a fraction", "2026-11-20T00:00:00Z", false],
  ["a day", "2026-11-20", false],
  ["a number of 13 digits that is nowhere near now", "4006381333931", false],
  ["a shorter number", "1700000000", false],
  ["a key with a moment in it", `order-${Date.now()}`, false],
  ["a UUID", "018f4d5e-7c3b-7a2e-9c1d-2b3a4c5d6e7f", false],
])("whether %s looks as if it were made of the clock", (_, key, expected) => {
  expect(looksLikeTimestamp(key)).toBe(expected);
});
