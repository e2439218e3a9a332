import { afterAll, beforeAll, expect, test } from "vitest";
import { loadFamilies } from "../case.ts";
import { typescriptAdapter } from "../languages.ts";
import { failuresOf, runCases } from "../run-cases.ts";
import { type Copy, copyClient } from "./apply.ts";
import { DEFECTS } from "./defects.ts";

const cases = loadFamilies().flatMap((family) => family.cases);
let copy: Copy;

beforeAll(async () => {
  copy = await copyClient();
});

afterAll(() => copy[Symbol.asyncDispose]());

function casesOf(name: string) {
  return cases.filter((each) => each.name === name);
}

test("the copy without a defect passes the cases that catch defects", async () => {
  const catching = DEFECTS.flatMap(({ caughtBy }) => casesOf(caughtBy));
  expect(catching).toHaveLength(DEFECTS.length);
  const verdicts = await runCases(typescriptAdapter(copy.source), catching);
  expect(failuresOf(verdicts)).toEqual([]);
});

test.each(DEFECTS)("a client that $name is caught", async (defect) => {
  const { undo } = await copy.apply(defect);
  const [verdict] = await runCases(typescriptAdapter(copy.source), casesOf(defect.caughtBy));
  await undo();
  expect(verdict?.differences.join("\n")).toMatch(/ is .*, not | the one before, not |the service saw/);
});
