import { access } from "node:fs/promises";
import { expect, test } from "vitest";
import { FAULTS } from "../faults/all.ts";
import { applyMutant } from "./apply.ts";
import { MUTANTS } from "./mutants.ts";

test("there are twelve mutants with different names", () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(12);
});

test.each(MUTANTS)("$name applies to the current source, and its copy is removed", async (mutant) => {
  const server = await applyMutant(mutant);
  await access(server.main);
  await server[Symbol.asyncDispose]();
  await expect(access(server.main)).rejects.toThrow("ENOENT");
});

test("a mutant whose text is not in the source is refused", async () => {
  const [first] = MUTANTS;
  if (first === undefined) throw new Error("there are no mutants");
  const stale = { ...first, replacements: [{ file: "main.ts", from: "no such text", to: "" }] };
  await expect(applyMutant(stale)).rejects.toThrow("is out of date: found 0 times in main.ts");
});

test("the faults that mutants need exist", () => {
  const known = FAULTS.map(({ name }) => name);
  expect(MUTANTS.flatMap(({ faults }) => faults).filter((name) => !known.includes(name))).toEqual([]);
});
