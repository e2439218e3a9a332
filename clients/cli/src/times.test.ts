import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  Deadline,
  formatAlike,
  formatDuration,
  formatMoment,
  Hour,
  Moment,
  parseFuture,
  parsePast,
} from "./times.ts";

test("no duration is a dash, and an empty one no seconds", () => {
  expect(formatDuration(undefined)).toBe("-");
  expect(formatDuration(durationFromMs(0))).toBe("0s");
});

const NOW = "2026-01-31T09:00:00Z";

beforeEach(() => void vi.useFakeTimers({ now: Date.parse(NOW) }));
afterEach(() => void vi.useRealTimers());

test("a moment is read as RFC 3339 has it, with any offset", () => {
  expect(formatMoment(parsePast("2026-01-30T10:00:00.123+01:00"))).toBe("2026-01-30T09:00:00Z");
  expect(formatMoment(parseFuture("2026-02-01T00:00Z"))).toBe("2026-02-01T00:00:00Z");
});

test("a duration counts from now, back or forward", () => {
  expect(formatMoment(parsePast("24h"))).toBe("2026-01-30T09:00:00Z");
  expect(formatMoment(parseFuture("1h"))).toBe("2026-01-31T10:00:00Z");
});

test.each(["", "yesterday", "2026-01-31", "2026-01-31T09:00:00", "2026-13-01T00:00:00Z"])(
  "%j is not a moment",
  (text) => {
    expect(() => parsePast(text)).toThrow(InvalidArgumentError);
  },
);

test("no moment is a dash", () => {
  expect(formatMoment(undefined)).toBe("-");
});

test("a time in a table is relative on a terminal, and absolute in a pipe", () => {
  const at = timestampFromMs(Date.parse("2026-01-31T09:00:00Z"));
  const nowMs = Date.parse("2026-01-31T10:59:00Z");
  expect(new Moment(at).format(nowMs)).toBe("1h ago");
  expect(new Deadline(at).format(nowMs - 2 * 3_600_000)).toBe("in 1m");
  expect(new Moment(at).format(undefined)).toBe("2026-01-31T09:00:00Z");
  expect(new Moment(undefined).format(nowMs)).toBe("-");
});

test("what is known to the hour is never before an event of the same hour", () => {
  const hour = timestampFromMs(Date.parse("2026-01-31T09:00:00Z"));
  const at = (time: string) => new Hour(hour).format(Date.parse(`2026-01-31T${time}Z`));
  expect([at("09:18:00"), at("09:59:59"), at("10:00:00"), at("12:30:00")]).toEqual([
    "this hour",
    "this hour",
    "now",
    "2h ago",
  ]);
  expect(new Hour(hour).format(undefined)).toBe("2026-01-31T09:00/09:59Z");
  expect(new Hour(undefined).format(0)).toBe("not yet");
});

test("a past time is never ahead, regardless of what this machine's clock says", () => {
  const at = timestampFromMs(Date.parse("2026-01-31T09:00:05Z"));
  for (const behindMs of [0, 1, 5000, 3_600_000]) {
    expect(new Moment(at).format(Date.parse("2026-01-31T09:00:05Z") - behindMs)).toBe("now");
  }
  expect(new Moment(at).format(Date.parse("2026-01-31T09:00:07Z"))).toBe("2s ago");
});

test("the durations of a column have one unit", () => {
  const alike = (...ms: number[]) => formatAlike(ms.map((each) => durationFromMs(each)));
  expect(alike(6 * 3_600_000, 72 * 3_600_000, 7 * 86_400_000)).toEqual(["6h", "72h", "168h"]);
  expect(alike(90_000, 3_600_000)).toEqual(["90s", "3600s"]);
  expect(alike(24 * 3_600_000, 72 * 3_600_000)).toEqual(["24h", "72h"]);
  expect(formatAlike([undefined, durationFromMs(500)])).toEqual(["-", "500ms"]);
});
