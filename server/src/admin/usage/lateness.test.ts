import { expect, test } from "vitest";
import { LAST_LATENESS_BUCKET, latenessBucket, latenessFloorMs, latenessLimitMs } from "./lateness.ts";

const DAY_MS = 86_400_000;

test("a bucket's limits lie around each of its values, and its middle is within a tenth of them", () => {
  for (let latenessMs = 1001; latenessMs < 400 * DAY_MS; latenessMs *= 1.0137) {
    const bucket = latenessBucket(latenessMs);
    const [floorMs, limitMs = Number.NaN] = [latenessFloorMs(bucket), latenessLimitMs(bucket)];
    expect(floorMs).toBeLessThan(latenessMs);
    expect(limitMs).toBeGreaterThanOrEqual(latenessMs);
    const middleMs = (2 * limitMs * floorMs) / (limitMs + floorMs);
    expect(Math.abs(middleMs - latenessMs) / latenessMs).toBeLessThan(0.101);
  }
});

test.each([
  [-5, 0],
  [1000, 0],
  [1001, 1],
  [400 * DAY_MS, 87],
  [500 * DAY_MS, LAST_LATENESS_BUCKET],
  [Number.POSITIVE_INFINITY, LAST_LATENESS_BUCKET],
])("a repeat that is %d ms late falls into bucket %i", (latenessMs, bucket) => {
  expect(latenessBucket(latenessMs)).toBe(bucket);
});
