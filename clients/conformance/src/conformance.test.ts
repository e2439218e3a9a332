import { beforeAll, expect, test } from "vitest";
import { loadFamilies } from "./case.ts";
import { typescriptAdapter } from "./languages.ts";
import { failuresOf, runCases, type Verdict } from "./run-cases.ts";

/** Many cases wait for delays, which take longer on a machine that is busy. */
const TIMEOUT_MS = 600_000;

const families = loadFamilies();
let verdicts: readonly Verdict[];

// All at once: a few processes serve every family, and the waits of one pass during those of others.
beforeAll(async () => {
  verdicts = await runCases(
    typescriptAdapter(),
    families.flatMap(({ cases }) => cases),
  );
}, TIMEOUT_MS);

test("there are at least 150 cases", () => {
  expect(families.flatMap(({ cases }) => cases).length).toBeGreaterThanOrEqual(150);
});

test.each(families)("the TypeScript client passes the cases of $family", ({ cases }) => {
  const expected = cases.filter(({ lacks }) => lacks?.typescript === undefined);
  const own = verdicts.filter((verdict) => cases.includes(verdict.case));
  expect(own.map((verdict) => verdict.case.name)).toEqual(expected.map(({ name }) => name));
  expect(failuresOf(own)).toEqual([]);
});
