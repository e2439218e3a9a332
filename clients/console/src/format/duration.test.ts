import { describe, expect, it } from "vitest";
import { formatDuration, formatDurationMs, parseDuration } from "./duration.ts";

const HOUR_MS = 3_600_000;

describe("durations", () => {
  it("are shown in at most two units, rounded down", () => {
    expect(formatDuration(0)).toBe("0s");
    expect(formatDuration(250)).toBe("250ms");
    expect(formatDuration(59_999)).toBe("59s");
    expect(formatDuration(90_000)).toBe("1m 30s");
    expect(formatDuration(72 * HOUR_MS)).toBe("72h");
    expect(formatDuration(76.5 * HOUR_MS)).toBe("76h 30m");
    // No minutes beside days: the units follow each other.
    expect(formatDuration(100 * HOUR_MS + 60_000)).toBe("4d 4h");
    expect(formatDuration(-1_000)).toBe("-1s");
  });

  it("are shown exactly in one unit where nothing may be rounded", () => {
    expect(formatDurationMs(72 * HOUR_MS)).toBe("72h");
    expect(formatDurationMs(25 * HOUR_MS)).toBe("25h");
    expect(formatDurationMs(90_000)).toBe("90s");
    expect(formatDurationMs(1_500)).toBe("1500ms");
  });

  it("are read as the command line reads them", () => {
    expect(parseDuration("72h")).toBe(72 * HOUR_MS);
    expect(parseDuration(" 3 d ")).toBe(72 * HOUR_MS);
    expect(parseDuration("5m")).toBe(300_000);
    for (const text of ["", "5", "h", "1.5h", "-1h", "3 weeks", "1h30m", "9999999999s"]) {
      expect(parseDuration(text), text).toBeUndefined();
    }
  });
});
