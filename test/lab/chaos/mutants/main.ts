import { failUsage, readCommandLine, wholeNumber } from "../../../../server/dev/command-line.ts";
import { copySources, replaceTexts } from "../../../support/processes/sources-copy.ts";
import type { Violation } from "../../history/check.ts";
import { FAULTS } from "../faults/all.ts";
import { interruption, runToEnd } from "../interruption.ts";
import { LATE_NAMESPACES } from "../late/keys.ts";
import { runLateRound } from "../late/round.ts";
import { type Rig, startRig } from "../rig.ts";
import { type RoundOptions, runRound } from "../round.ts";
import { MUTANTS, type Mutant } from "./mutants.ts";

const USAGE = `npm run lab -- mutants [OPTIONS]: runs the same chaos against builds with one defect each, and prints how
soon each was caught, for every seed. Exits 1 if a mutant survives.
  --seeds N   seeds of each; default: 5
  --only A,B  some of ${MUTANTS.map(({ name }) => name).join(" ")}`;

const MAX_MS = 180_000;
/** The client's messages, which the server imports. */
const MESSAGES = ["clients/typescript/package.json", "clients/typescript/src/gen"];
/** A load is judged after it ends, so a mutant gets several loads, each longer than the one before. */
const FIRST_ROUND_MS = 10_000;
const LONGER = 2;

const { values } = readCommandLine(USAGE, {
  options: { seeds: { type: "string", default: "5" }, only: { type: "string" } },
});
const seeds = wholeNumber(USAGE, "seeds", values.seeds, 1, 1000);
const chosen = values.only === undefined ? MUTANTS : values.only.split(",").map(mutantNamed);

await runToEnd(run);

function mutantNamed(name: string): Mutant {
  return MUTANTS.find((mutant) => mutant.name === name) ?? failUsage(USAGE, `there is no mutant ${name}`);
}

async function run(): Promise<void> {
  const rows: string[][] = [];
  for (const mutant of chosen) {
    const row = [mutant.name];
    for (let seed = 1; seed <= seeds; seed++) {
      const caught = await hunt(mutant, seed);
      if (caught === undefined) process.exitCode = 1;
      row.push(caught === undefined ? "SURVIVED" : `${caught.afterS} s (${caught.invariants})`);
      console.log(row.join("  "));
    }
    rows.push(row);
  }
  const heads = ["mutant", ...Array.from({ length: seeds }, (_, index) => `seed ${index + 1}`)];
  console.log(`\nSeconds of load and judgement until caught (violated invariants):\n`);
  for (const row of [heads, heads.map(() => "---"), ...rows]) console.log(`| ${row.join(" | ")} |`);
}

async function usualViolations(rig: Rig, options: RoundOptions): Promise<readonly Violation[]> {
  return (await runRound(rig, options)).judgement.violations;
}

async function lateViolations(rig: Rig, options: RoundOptions): Promise<readonly Violation[]> {
  return (await runLateRound(rig, options)).violations;
}

interface Caught {
  readonly afterS: number;
  /** The numbers of the violated invariants. */
  readonly invariants: string;
}

/** Returns when the mutant was caught; undefined if it survived `MAX_MS`. */
async function hunt(mutant: Mutant, seed: number): Promise<Caught | undefined> {
  await using copy = await copySources("server", ...MESSAGES);
  await copy.write(await replaceTexts("server/src", mutant.replacements));
  const isLate = mutant.load === "late";
  const late = isLate && { namespaces: LATE_NAMESPACES, onOwnDisk: true };
  await using rig = await startRig({ replicas: 3, main: copy.pathOf("server/src/main.ts"), ...late });
  const faults = FAULTS.filter(({ name }) => mutant.faults.includes(name));
  const { signal } = interruption;
  const startedAtMs = performance.now();
  let durationMs = FIRST_ROUND_MS + (faults.length > 0 ? FIRST_ROUND_MS : 0);
  for (let number = 1; performance.now() - startedAtMs + durationMs < MAX_MS; number++) {
    const options = { name: `m${number}`, seed: seed * 100 + number, durationMs, faults, signal };
    const violations = await (isLate ? lateViolations : usualViolations)(rig, {
      ...options,
      onProgress: () => {},
    });
    signal.throwIfAborted();
    if (violations.length > 0) {
      const invariants = new Set(violations.map(({ invariant }) => invariant));
      const afterS = Math.round((performance.now() - startedAtMs) / 1000);
      return { afterS, invariants: [...invariants].sort((a, b) => a - b).join(",") };
    }
    durationMs *= LONGER;
  }
  return undefined;
}
