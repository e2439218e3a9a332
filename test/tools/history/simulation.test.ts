import fc from "fast-check";
import { expect, test } from "vitest";
import { checkHistory } from "./check.ts";
import { DEFECTS, type Defect } from "./defects.ts";
import { simulate } from "./simulation.ts";

/** Histories per defect; the seeds are fixed, so the rates are fixed too. */
const HISTORIES = 6;
/** Enough to find a violation; proving that there is none may take longer. */
const BUDGET = 20_000;
/** Visible only to a call between two particular moments, so it needs more keys. */
const RARELY_SEEN: readonly Defect[] = ["loses an extension", "loses a release"];

const EXPECTATIONS = DEFECTS.map((defect) =>
  RARELY_SEEN.includes(defect) ? { defect, percent: 66, keys: 60 } : { defect, percent: 90, keys: 15 },
);

test("every history of a correct service is legal", () => {
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const { violations, timeouts } = checkHistory(simulate({ seed }).history);
      expect(violations.map(({ message }) => message)).toEqual([]);
      expect(timeouts).toEqual([]);
    }),
    { numRuns: 150 },
  );
});

test("a legal history that takes more than a hundred thousand attempts is found to be legal", () => {
  expect(checkHistory(simulate({ seed: 2147460997 }).history)).toMatchObject({
    violations: [],
    timeouts: [],
  });
});

test.each(EXPECTATIONS)(
  "a service that $defect is caught in at least $percent % of histories with the defect",
  ({ defect, percent, keys }) => {
    let struck = 0;
    let caught = 0;
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const simulation = simulate({ seed, defect, keys, calls: 60 * keys, clients: keys });
      if (simulation.struck === 0) continue;
      struck++;
      if (checkHistory(simulation.history, { budget: BUDGET }).violations.length > 0) caught++;
    }
    expect(struck).toBeGreaterThanOrEqual(HISTORIES / 3);
    expect(caught * 100).toBeGreaterThanOrEqual(struck * percent);
  },
);
