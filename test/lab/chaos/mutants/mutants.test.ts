import { access, readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { FAULTS } from "../faults/all.ts";
import { applyMutant, mutatedFiles } from "./apply.ts";
import { MUTANTS } from "./mutants.ts";

test.each(MUTANTS)("$name applies to the current source, which stays valid TypeScript", async (mutant) => {
  for (const text of (await mutatedFiles(mutant)).values()) stripTypeScriptTypes(text);
});

test("a mutant's server is a copy with the changed files, and is removed", async () => {
  const [mutant] = MUTANTS;
  if (mutant === undefined) throw new Error("there are no mutants");
  const server = await applyMutant(mutant);
  for (const [file, text] of await mutatedFiles(mutant)) {
    expect(await readFile(join(dirname(server.main), file), "utf8")).toBe(text);
  }
  await server[Symbol.asyncDispose]();
  await expect(access(server.main)).rejects.toThrow("ENOENT");
});

test("a mutant whose text is not in the source is refused", async () => {
  const [first] = MUTANTS;
  if (first === undefined) throw new Error("there are no mutants");
  const stale = { ...first, replacements: [{ file: "main.ts", from: "no such text", to: "" }] };
  await expect(mutatedFiles(stale)).rejects.toThrow("is out of date: found 0 times in main.ts");
});

test("the faults that mutants need exist", () => {
  const known = FAULTS.map(({ name }) => name);
  expect(MUTANTS.flatMap(({ faults }) => faults).filter((name) => !known.includes(name))).toEqual([]);
});
