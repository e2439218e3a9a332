import { InvalidArgumentError } from "commander";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { formatMoment, parseFuture, parsePast } from "./moments.ts";

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
  "%j is no moment",
  (text) => {
    expect(() => parsePast(text)).toThrow(InvalidArgumentError);
  },
);

test("no moment is a dash", () => {
  expect(formatMoment(undefined)).toBe("-");
});
