import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { failUsage, readCommandLine, wholeNumber } from "../../../server/dev/command-line.ts";
import { MUTANTS } from "./mutants.ts";
import { findViolation } from "./quint.ts";

const USAGE = `npm run lab -- model [OPTIONS]: checks the protocol. Exits 1 if something does not hold.
  --traces N  simulate N runs
  --mutants   print the first violation of each mutant
  --replay N  replay N runs on a real server
  --seed N    the seed of runs and mutants; default: 1`;

const { values } = readCommandLine(USAGE, {
  options: {
    traces: { type: "string" },
    seed: { type: "string", default: "1" },
    mutants: { type: "boolean", default: false },
    replay: { type: "string" },
  },
});
const number = (option: "traces" | "replay", max: number) =>
  values[option] === undefined ? undefined : wholeNumber(USAGE, option, values[option], 1, max);
const seed = wholeNumber(USAGE, "seed", values.seed, 0, 2 ** 32 - 1);
const [traces, runs] = [number("traces", 1e9), number("replay", 1e6)];
if ((traces ?? runs) === undefined && !values.mutants)
  failUsage(USAGE, "choose --traces, --mutants or --replay");

if (traces !== undefined) await simulate(traces);
if (values.mutants) await judgeMutants();
if (runs !== undefined) replay(runs);

async function simulate(runs: number): Promise<void> {
  const itfFile = "model-violation.itf.json";
  const protocol = { module: "protocol", init: "init", step: "step", seed, runs, steps: 60 };
  const violation = await findViolation(protocol, itfFile);
  if (violation === undefined) {
    // Quint stores a run in any case.
    await rm(itfFile, { force: true });
    return console.log(`${runs} runs of seed ${seed} violate no invariant.`);
  }
  console.error(
    `${violation.invariants.join(", ")} violated by seed ${violation.seed}; the run is in ${itfFile}.`,
  );
  process.exitCode = 1;
}

async function judgeMutants(): Promise<void> {
  for (const [init, { step }] of Object.entries(MUTANTS)) {
    const violation = await findViolation({ module: "mutants", init, step, seed, runs: 1000, steps: 60 });
    console.log(
      `${init}: ${violation ? `${violation.invariants.join(", ")}, seed ${violation.seed}` : "not found"}`,
    );
    if (violation === undefined) process.exitCode = 1;
  }
}

function replay(runs: number): void {
  const env = { ...process.env, ONCEWARD_MODEL_RUNS: String(runs), ONCEWARD_MODEL_SEED: values.seed };
  const args = ["run", "--project=service", "test/lab/model/replay"];
  process.exitCode = spawnSync("vitest", args, { env, stdio: "inherit" }).status ?? 1;
}
