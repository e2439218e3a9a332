import { expect, test } from "vitest";
import { loadFamilies } from "./case.ts";
import { typescriptAdapter } from "./languages.ts";
import { failuresOf, runCases } from "./run-cases.ts";

/** Many cases wait for delays, which take longer on a machine that is busy. */
const TIMEOUT_MS = 300_000;

const families = loadFamilies();

test("there are at least 150 cases", () => {
  expect(families.flatMap(({ cases }) => cases).length).toBeGreaterThanOrEqual(150);
});

test.each(families)(
  "the TypeScript client passes the cases of $family",
  { timeout: TIMEOUT_MS },
  async ({ cases }) => {
    const verdicts = await runCases(typescriptAdapter(), cases);
    const expected = cases.filter(({ lacks }) => lacks?.typescript === undefined);
    expect(verdicts.map((verdict) => verdict.case.name)).toEqual(expected.map(({ name }) => name));
    expect(failuresOf(verdicts)).toEqual([]);
  },
);
