import { describe, expect, it } from "vitest";
import { parseMoment, writeMoment } from "./moment.ts";

const NOW = new Date("2026-11-23T18:00:00Z");

describe("parseMoment", () => {
  it("reads a duration as that long ago", () => {
    expect(parseMoment("24h", NOW)).toEqual(new Date("2026-11-22T18:00:00Z"));
    expect(parseMoment(" 3 d ", NOW)).toEqual(new Date("2026-11-20T18:00:00Z"));
  });

  it("reads dates and times of the browser's zone, and RFC 3339", () => {
    expect(parseMoment("2026-11-23", NOW)).toEqual(new Date(2026, 10, 23));
    expect(parseMoment("2026-11-23 07:05", NOW)).toEqual(new Date(2026, 10, 23, 7, 5));
    expect(parseMoment("2026-11-23 07:05:09", NOW)).toEqual(new Date(2026, 10, 23, 7, 5, 9));
    expect(parseMoment("2026-11-23T07:05:09.5+01:00", NOW)).toEqual(new Date("2026-11-23T06:05:09.5Z"));
  });

  it("refuses what is not a time", () => {
    for (const text of [
      "",
      "soon",
      "2026-02-31",
      "2026-13-01",
      "2026-11-23 25:00",
      "2026-11-23 07:61",
      "9999999d",
    ]) {
      expect(parseMoment(text, NOW), text).toBeUndefined();
    }
  });

  it("reads what writeMoment wrote", () => {
    expect(parseMoment(writeMoment(NOW), NOW)).toEqual(NOW);
  });
});
