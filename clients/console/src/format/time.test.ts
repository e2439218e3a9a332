import { describe, expect, it } from "vitest";
import { formatAbsolute, formatHour, formatRelative, formatZone } from "./time.ts";

describe("times", () => {
  it("are absolute with 24 hours and their zone", () => {
    const midnight = new Date("2026-11-23T00:06:07.900Z");
    expect(formatAbsolute(midnight, "UTC")).toBe("2026-11-23 00:06:07 UTC");
    expect(formatAbsolute(midnight, "Asia/Kolkata")).toBe("2026-11-23 05:36:07 GMT+5:30");
  });

  it("of an hour skip what an axis or a heading says", () => {
    const hour = new Date("2026-11-23T18:00:00Z");
    expect(formatHour(hour, "UTC")).toBe("11-23 18:00");
    expect(formatZone(hour, "Asia/Kolkata")).toBe("GMT+5:30");
  });

  it("are relative in both directions", () => {
    const now = new Date("2026-11-23T12:00:00Z");
    const at = (ms: number) => new Date(now.getTime() + ms);
    expect(formatRelative(at(-180_000), now)).toBe("3 min ago");
    expect(formatRelative(at(7_200_000), now)).toBe("in 2 h");
    expect(formatRelative(at(-1_000), now)).toBe("now");
  });
});
