import { afterAll, beforeAll, expect, test } from "vitest";
import {
  copySources,
  replaceTexts,
  type SourcesCopy,
} from "../../../../test/support/processes/sources-copy.ts";
import { loadFamilies } from "../case.ts";
import { typescriptAdapter } from "../languages.ts";
import { failuresOf, runCases } from "../run-cases.ts";
import { DEFECTS } from "./defects.ts";

const CLIENT = "clients/typescript";
const cases = loadFamilies().flatMap((family) => family.cases);
let copy: SourcesCopy;

beforeAll(async () => {
  copy = await copySources("package.json", CLIENT, "clients/conformance/src");
});

afterAll(() => copy[Symbol.asyncDispose]());

function casesOf(name: string) {
  return cases.filter((each) => each.name === name);
}

test("the copy without a defect passes the cases that catch defects", async () => {
  const catching = DEFECTS.flatMap(({ caughtBy }) => casesOf(caughtBy));
  expect(catching).toHaveLength(DEFECTS.length);
  const verdicts = await runCases(typescriptAdapter(`${copy.pathOf("clients/conformance/src")}/`), catching);
  expect(failuresOf(verdicts)).toEqual([]);
});

test.each(DEFECTS)("a client that $name is caught", async (defect) => {
  const undo = await copy.write(await replaceTexts(`${CLIENT}/src`, [defect]));
  const [verdict] = await runCases(
    typescriptAdapter(`${copy.pathOf("clients/conformance/src")}/`),
    casesOf(defect.caughtBy),
  );
  await undo();
  expect(verdict?.differences.join("\n")).toMatch(/ is .*, not | the one before, not |the service saw/);
});
