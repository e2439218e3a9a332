import { describe, expect, it } from "vitest";
import { formatDuration, formatExactly, parseDuration } from "./duration.ts";

const HOUR_MS = 3_600_000;

describe("durations", () => {
  it("are shown in at most two units, rounded down", () => {
    expect(formatDuration(0)).toBe("0 s");
    expect(formatDuration(250)).toBe("250 ms");
    expect(formatDuration(59_999)).toBe("59 s");
    expect(formatDuration(90_000)).toBe("1 min 30 s");
    expect(formatDuration(72 * HOUR_MS)).toBe("3 d");
    expect(formatDuration(76.5 * HOUR_MS)).toBe("3 d 4 h");
    // No minutes beside days: the units follow each other.
    expect(formatDuration(24 * HOUR_MS + 60_000)).toBe("1 d");
    expect(formatDuration(-1_000)).toBe("-1 s");
  });

  it("are shown exactly in one unit where nothing may be rounded", () => {
    expect(formatExactly(72 * HOUR_MS)).toBe("3 d");
    expect(formatExactly(25 * HOUR_MS)).toBe("25 h");
    expect(formatExactly(90_000)).toBe("90 s");
    expect(formatExactly(1_500)).toBe("1.5 s");
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
