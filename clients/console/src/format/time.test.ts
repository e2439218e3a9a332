import { describe, expect, it } from "vitest";
import { describeHour, formatAbsolute, formatHour, formatRelative, formatZone } from "./time.ts";

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
    expect(formatRelative(at(-217_000), now)).toBe("3m ago");
    expect(formatRelative(at(7_200_000), now)).toBe("in 2h");
    expect(formatRelative(at(-1_000), now)).toBe("now");
  });

  it("that are known to the hour name the hour, and no moment in it", () => {
    const hour = new Date("2026-11-23T23:00:00Z");
    expect(describeHour(hour, new Date("2026-11-23T23:59:59Z"), "UTC")).toBe("this hour");
    expect(describeHour(hour, new Date("2026-11-24T02:00:00Z"), "UTC")).toBe("11-23 23:00 to 00:00, 2h ago");
  });
});
