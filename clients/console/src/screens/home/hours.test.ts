import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { UsageHourSchema } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { describe, expect, it } from "vitest";
import { HOUR_MS, hourOf, sumByHour, totalOf } from "./hours.ts";

const CURRENT = new Date("2026-11-23T18:00:00Z");

function row(hoursAgo: number, namespace: string, granted: number) {
  const hour = timestampFromDate(new Date(CURRENT.getTime() - hoursAgo * HOUR_MS));
  return create(UsageHourSchema, { hour, namespace, granted: BigInt(granted), mismatches: 1n });
}

describe("the hours of Home", () => {
  it("are 24 that end with the current one, and sum all namespaces", () => {
    const hours = sumByHour([row(0, "charges", 2), row(0, "refunds", 3), row(23, "charges", 7)], CURRENT);
    expect(hours).toHaveLength(24);
    expect(hours[0]).toMatchObject({ hour: new Date("2026-11-22T19:00:00Z"), granted: 7 });
    expect(hours[23]).toMatchObject({ hour: CURRENT, granted: 5, mismatches: 2 });
    expect(hours[12]).toMatchObject({ granted: 0 });
    expect(totalOf(hours, "granted")).toBe(12);
  });

  it("skip rows of other hours", () => {
    const hours = sumByHour([row(24, "charges", 9), row(-1, "charges", 9)], CURRENT);
    expect(totalOf(hours, "granted")).toBe(0);
  });

  it("begin at the full hour", () => {
    expect(hourOf(new Date("2026-11-23T18:59:59.999Z"))).toEqual(CURRENT);
  });
});
