import { expect, test } from "vitest";
import { formatBytes, formatSize, parseBytes } from "./bytes.ts";
import { formatDuration, formatDurationMs, HOUR_MS, parseDurationMs } from "./durations.ts";
import { parseDuration, parseSize } from "./field-facts.ts";
import { describeInsufficientData } from "./insufficient-data.ts";
import { formatCount, formatEstimate, formatLatency, formatNoun, formatRate, formatShare } from "./words.ts";

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

test("measured durations are written in at most two units, rounded down", () => {
  const written = [0, 250, 59_999, 90_000, 76.5 * HOUR_MS, -1_000].map(formatDuration);
  expect(written).toEqual(["0s", "250ms", "59s", "1m 30s", "76h 30m", "-1s"]);
  // No minutes beside days: the units follow each other.
  expect(formatDuration(100 * HOUR_MS + 60_000)).toBe("4d 4h");
});

test("durations and sizes are read with spaces, too", () => {
  expect([parseDuration(" 3 d "), parseDuration("3 weeks")]).toEqual([72 * HOUR_MS, undefined]);
  expect([" 64 kib ", "1500 B", "B"].map(parseSize)).toEqual([65_536, 1_500, undefined]);
});

test("a measured size is written as a typed one, with three digits", () => {
  const sizes = [0, 1_023, 1_536, 5 * 1024 ** 2, 5.36 * 1024 ** 2, 1_000 * 1024, 10n ** 12n];
  expect(sizes.map(formatSize)).toEqual([
    ...["0B", "1,023B", "1.5KiB", "5MiB", "5.36MiB", "1000KiB", "931GiB"],
  ]);
});

test("counts keep every digit of an int64, and estimates and shares have three", () => {
  expect(formatCount(9_007_199_254_740_993n)).toBe("9,007,199,254,740,993");
  expect([0, 0.0982, 0.25, 4.61, 12_345.6].map(formatRate)).toEqual([
    "0",
    "under 0.1",
    "0.3",
    "4.6",
    "12,300",
  ]);
  expect([formatEstimate(12_345.6), formatEstimate(0.00042), formatShare(0.12345)]).toEqual([
    ...["12,300", "0.00042", "12.3%"],
  ]);
  expect([formatNoun(1n, "record", "records"), formatNoun(0, "record", "records")]).toEqual([
    ...["1 record", "0 records"],
  ]);
});

test("a latency that is known to a power of two is written as a bound", () => {
  expect(formatLatency(1_024)).toBe("≤ 1,020ms");
});
