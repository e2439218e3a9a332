import { expect, test } from "vitest";
import { formatBytes, parseBytes } from "./bytes.ts";
import { formatDurationMs, parseDurationMs } from "./durations.ts";
import { describeInsufficientData } from "./insufficient-data.ts";

const HOUR_MS = 3_600_000;

test.each([
  ["0s", 0],
  ["250ms", 250],
  ["1500ms", 1500],
  ["90s", 90_000],
  ["15m", 900_000],
  ["72h", 72 * HOUR_MS],
  ["100h", 100 * HOUR_MS],
  ["4d", 96 * HOUR_MS],
])("%s is %i ms, and is written the same", (text, ms) => {
  expect(parseDurationMs(text)).toBe(ms);
  expect(formatDurationMs(ms)).toBe(text);
});

test.each(["", "7", "d", "7 d", "-7d", "7D", "1.5h", "7days", "1h30m", "9999999999s", "7ds"])(
  "%j is not a duration",
  (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  },
);

test.each([
  ["0", 0],
  ["1500", 1500],
  ["64KiB", 65_536],
  ["5GiB", 5 * 1024 ** 3],
  ["1025TiB", 1025 * 1024 ** 4],
])("%s are %i bytes, and are written the same", (text, bytes) => {
  expect(parseBytes(text)).toBe(bytes);
  expect(parseBytes(text.toLowerCase())).toBe(bytes);
  expect(formatBytes(bytes)).toBe(text);
});

test.each(["", "KiB", "1.5KiB", "-1", "5 GiB", "5GB", "5K", "9007TiB0", "9999TiB9", "99999TiB"])(
  "%j is not a number of bytes",
  (text) => {
    expect(parseBytes(text)).toBeUndefined();
  },
);

test.each([
  [1, 2000n, "needs 1 more day and 2,000 more claims"],
  [3, 0n, "needs 3 more days"],
  [0, 1n, "needs 1 more claim"],
  [0, 0n, "needs more data"],
])("%i missing days and %i missing claims are %j", (missingDays, missingClaims, text) => {
  expect(describeInsufficientData({ missingDays, missingClaims })).toBe(text);
});
