import { create } from "@bufbuild/protobuf";
import { QuotasSchema } from "@onceward/client/proto";
import { expect, test } from "vitest";
import type { Measured } from "./measure.ts";
import { describeFigures, limitOf } from "./report.ts";

const FIGURE: Measured = {
  name: "claims",
  seconds: 5,
  callers: 64,
  done: 10_000,
  perSecond: 2000,
  p50Ms: 31.5,
  p99Ms: 60,
  refused: {},
  errors: {},
  processors: 0.3,
};
const QUOTAS = create(QuotasSchema, { operationsPerSecond: 500 });

test("the limit is the quota that refuses, or else errors, the program's processor, or latency", () => {
  const refused = { ...FIGURE, refused: { QUOTA_RATE: 9 }, processors: 1 };
  expect(limitOf(refused, QUOTAS)).toBe(
    "the tenant's quota of 500 operations a second: 9 QUOTA_RATE refused. These figures are the quota's, not the installation's",
  );
  expect(limitOf({ ...FIGURE, refused: { QUOTA_RECORDS: 9 } }, QUOTAS)).toMatch(
    /^the tenant's quota: 9 QUOTA_RECORDS/,
  );
  expect(limitOf({ ...FIGURE, errors: { NO_ANSWER: 200 } }, undefined)).toBe("errors: 200 NO_ANSWER");
  expect(limitOf({ ...FIGURE, errors: { NO_ANSWER: 1 }, processors: 0.9 }, undefined)).toMatch(
    /^this program's processor/,
  );
  expect(limitOf(FIGURE, undefined)).toMatch(/^latency: 64 at once, each of which waits 31\.5 ms/);
});

test("the table has one line for each phase, and one for its limit", () => {
  expect(describeFigures([FIGURE], undefined).split("\n")).toEqual([
    "PHASE   PER SECOND  P50 MS  P99 MS  REFUSED  ERRORS  CLIENT PROCESSORS",
    "claims  2000        31.50   60.00   0        0       0.30",
    "",
    expect.stringMatching(/^claims: limited by latency/),
    "",
  ]);
});
