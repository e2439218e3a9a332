import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { UsageHourSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { describe, expect, it } from "vitest";
import { HOUR_MS } from "../../format/duration.ts";
import { barOf, lastOf, ofHour, sumByBar, totalOf } from "./hours.ts";

const CURRENT = new Date("2026-11-23T18:00:00Z");

function row(hoursAgo: number, namespace: string, claims: number) {
  const hour = timestampFromDate(new Date(CURRENT.getTime() - hoursAgo * HOUR_MS));
  const refusals = { refusedByRate: 2n, refusedByBytes: 1n, lateKeysRefused: 1n };
  return ofHour(
    create(UsageHourSchema, { hour, namespace, claims: BigInt(claims), mismatches: 1n, ...refusals }),
  );
}

describe("the bars of Home", () => {
  it("of a day are 24 that end with the current hour, and sum all namespaces", () => {
    const bars = sumByBar(
      [row(0, "charges", 2), row(0, "refunds", 3), row(23, "charges", 7)],
      CURRENT,
      "24h",
    );
    expect(bars).toHaveLength(24);
    expect(bars[0]).toMatchObject({ from: new Date("2026-11-22T19:00:00Z"), claims: 7 });
    expect(bars[23]).toMatchObject({ from: CURRENT, claims: 5, mismatches: 2, refused: 8, refusedByRate: 4 });
    expect(bars[12]).toMatchObject({ claims: 0 });
    expect(totalOf(bars, "claims")).toBe(12);
  });

  it("of a month are days", () => {
    const current = barOf(CURRENT, "30d");
    expect(current).toEqual(new Date("2026-11-23T00:00:00Z"));
    const bars = sumByBar(
      [row(0, "charges", 1), row(17, "charges", 1), row(19, "charges", 1)],
      current,
      "30d",
    );
    expect(bars.map(({ claims }) => claims).slice(-2)).toEqual([1, 2]);
  });

  it("skip rows of other hours", () => {
    const bars = sumByBar([row(24, "charges", 9), row(-1, "charges", 9)], CURRENT, "24h");
    expect(totalOf(bars, "claims")).toBe(0);
  });

  it("begin at the full hour", () => {
    expect(barOf(new Date("2026-11-23T18:59:59.999Z"), "24h")).toEqual(CURRENT);
  });
});

it("a range is said in a sentence", () => {
  expect([lastOf("1h"), lastOf("24h")]).toEqual(["the last hour", "the last 24 hours"]);
});
