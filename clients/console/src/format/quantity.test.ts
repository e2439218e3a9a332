import { describe, expect, it } from "vitest";
import { formatCount, formatEstimate, formatNoun, formatShare, formatSize, parseSize } from "./quantity.ts";

describe("quantities", () => {
  it("keep every digit of an int64", () => {
    expect(formatCount(9_007_199_254_740_993n)).toBe("9,007,199,254,740,993");
  });

  it("show estimates and shares with three digits", () => {
    expect(formatEstimate(12_345.6)).toBe("12,300");
    expect(formatEstimate(0.00042)).toBe("0.00042");
    expect(formatShare(0.12345)).toBe("12.3%");
  });

  it("show sizes in binary units", () => {
    expect(formatSize(1_023)).toBe("1,023 B");
    expect(formatSize(1_536)).toBe("1.50 KiB");
    expect(formatSize(10n ** 12n)).toBe("931 GiB");
  });

  it("are read as the command line reads bytes, and with a space", () => {
    expect(parseSize(" 64 kib ")).toBe(65_536);
    expect(parseSize("1500 B")).toBe(1_500);
    for (const text of ["", "B", "1.5KiB", "5GB", "-1"]) expect(parseSize(text), text).toBeUndefined();
  });

  it("agree with their noun", () => {
    expect(formatNoun(1n, "record", "records")).toBe("1 record");
    expect(formatNoun(0, "record", "records")).toBe("0 records");
  });
});
