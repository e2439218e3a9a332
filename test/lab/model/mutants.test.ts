import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { MUTANTS } from "./mutants.ts";
import { findViolation, INVARIANTS } from "./quint.ts";

const SIMULATION = { seed: 1, runs: 400, steps: 60 };
/** The slowest mutant, without a seed of its own, is found in run 130. */
const PROTOCOL_RUNS = 130;

/** The simulations of one module take seconds of a processor each, one after the other. */
const TIMEOUT_MS = 400_000;

test("the protocol violates no invariant", { timeout: TIMEOUT_MS }, async () => {
  const protocol = { ...SIMULATION, module: "protocol", init: "init", step: "step", runs: PROTOCOL_RUNS };
  expect(await findViolation(protocol)).toBeUndefined();
  const losing = { ...protocol, module: "mutants", init: "losing", step: "stepLosing" };
  expect(await findViolation(losing)).toBeUndefined();
});

describe("Without a rule, the protocol violates an invariant:", { timeout: TIMEOUT_MS }, () => {
  test.each(Object.entries(MUTANTS))("%s", async (init, { invariants, ...mutant }) => {
    const violation = await findViolation({ ...SIMULATION, module: "mutants", init, ...mutant });
    expect(violation?.invariants).toEqual(invariants);
  });
});

test("each invariant is violated by a mutant", () => {
  const violated = new Set(Object.values(MUTANTS).flatMap(({ invariants }) => invariants));
  expect([...violated].sort()).toEqual(Object.keys(INVARIANTS).sort());
});

test("each rule has a mutant", async () => {
  const domain = await readFile(new URL("domain.qnt", import.meta.url), "utf8");
  const rules = /type Rules = \{([^}]*)\}/.exec(domain)?.[1]?.match(/\w+(?=: bool)/g) ?? [];
  const mutants = rules.map((rule) => `without${rule.charAt(0).toUpperCase()}${rule.slice(1)}`);
  expect(mutants.filter((mutant) => !(mutant in MUTANTS))).toEqual([]);
});
