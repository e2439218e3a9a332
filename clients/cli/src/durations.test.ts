import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { formatDuration, parseDuration } from "./durations.ts";

test.each([
  ["250ms", 250],
  ["90s", 90_000],
  ["15m", 900_000],
  ["24h", 86_400_000],
  ["7d", 604_800_000],
])("%s is %i ms, and is written the same", (text, ms) => {
  expect(durationMs(parseDuration(text))).toBe(ms);
  expect(formatDuration(durationFromMs(ms))).toBe(text);
});

test.each(["", "7", "d", "7 d", "-7d", "7D", "1.5h", "7days", "1h30m", "9999999999s"])(
  "%j is no duration",
  (text) => {
    expect(() => parseDuration(text)).toThrow(InvalidArgumentError);
  },
);

test("three days are 72h, as the contract says it; from four on they are days", () => {
  expect(formatDuration(durationFromMs(72 * 3_600_000))).toBe("72h");
  expect(formatDuration(durationFromMs(96 * 3_600_000))).toBe("4d");
  expect(formatDuration(durationFromMs(100 * 3_600_000))).toBe("100h");
});

test("no duration is a dash, and an empty one no seconds", () => {
  expect(formatDuration(undefined)).toBe("-");
  expect(formatDuration(durationFromMs(0))).toBe("0s");
});
