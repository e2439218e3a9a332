import { expect, test } from "vitest";
import { createRandom } from "../../support/random.ts";
import { CONFIDENCE, measureCoverage, SETTINGS } from "./coverage.ts";
import { simulate, TRAFFIC } from "./traffic.ts";

const RUNS = 20;
const SEED = 7;
/** Of the statements of one run, most are about the same repeats: 20 runs vary by this much. */
const TOLERANCE = 0.06;

test.each(Object.keys(TRAFFIC).flatMap((name) => Object.keys(SETTINGS).map((sample) => [name, sample])))(
  "intervals and bounds hold as often as they say: %s, %s",
  (name = "", sample = "") => {
    const [traffic, setting] = [TRAFFIC[name], SETTINGS[sample]];
    if (traffic === undefined || setting === undefined) throw new Error("no such traffic");
    const coverage = measureCoverage(traffic, setting, RUNS, SEED);
    expect(coverage.statements).toBeGreaterThanOrEqual(RUNS * 8);
    expect(coverage.interval).toBeGreaterThanOrEqual(CONFIDENCE - TOLERANCE);
    expect(coverage.duplicates).toBeGreaterThanOrEqual(CONFIDENCE - TOLERANCE);
    expect(coverage.bound).toBeGreaterThanOrEqual(CONFIDENCE - TOLERANCE);
  },
);

test("the simulated service counts every claim, and repeats as it recognises them", () => {
  const [traffic, setting] = [TRAFFIC["a mixture of programs and people"], SETTINGS["every key"]];
  if (traffic === undefined || setting === undefined) throw new Error("no such traffic");
  const { observations, repeats, duplicatesWith } = simulate(traffic, setting, createRandom(SEED).next);
  const claims = observations.claims.reduce((sum, day) => sum + day.claims, 0);
  expect(claims).toBe(traffic.perDay * setting.days + repeats.length);
  const late = repeats.filter(({ recognised }) => !recognised);
  expect(late.length).toBeGreaterThan(5);
  expect(duplicatesWith(setting.retentionMs)).toHaveLength(late.length);
  const counted = observations.late.flatMap((day) => day.repeats.map((bucket) => bucket.repeats));
  expect(counted.reduce((sum, count) => sum + count, 0)).toBe(late.length);
});
