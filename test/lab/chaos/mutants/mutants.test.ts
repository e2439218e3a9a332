import { stripTypeScriptTypes } from "node:module";
import { expect, test } from "vitest";
import { replaceTexts } from "../../../support/processes/sources-copy.ts";
import { FAULTS } from "../faults/all.ts";
import { MUTANTS } from "./mutants.ts";

test.each(MUTANTS)("$name applies to the current source, which stays valid TypeScript", async (mutant) => {
  const texts = await replaceTexts("server/src", mutant.replacements);
  for (const text of texts.values()) stripTypeScriptTypes(text);
});

test("the faults that mutants need exist", () => {
  const known = FAULTS.map(({ name }) => name);
  expect(MUTANTS.flatMap(({ faults }) => faults).filter((name) => !known.includes(name))).toEqual([]);
});
