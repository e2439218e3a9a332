import { spawnSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { parseArgs } from "node:util";
import { searchAll } from "./exhaustive/search.ts";
import { MUTANTS } from "./mutants.ts";
import { findViolation } from "./quint.ts";

/**
 * `npm run model -- --traces 10000 [--seed 1]` simulates the protocol; `--mutants` prints the first violation of each
 * mutant; `--replay 10000` replays traces on a real server; `--depth 8 [--keys 2]` visits every state of a small scope over
 * the functions of the domain. Exits 1 if something does not hold.
 */
const { values } = parseArgs({
  options: {
    traces: { type: "string" },
    seed: { type: "string", default: "1" },
    mutants: { type: "boolean", default: false },
    replay: { type: "string" },
    depth: { type: "string" },
    keys: { type: "string", default: "2" },
  },
});
const seed = Number(values.seed);

if (values.traces !== undefined) await simulate(Number(values.traces));
if (values.mutants) await judgeMutants();
if (values.replay !== undefined) replay(values.replay);
if (values.depth !== undefined) search(Number(values.depth));

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

/** Prints how soon each mutant is found. */
async function judgeMutants(): Promise<void> {
  for (const [init, { step }] of Object.entries(MUTANTS)) {
    const violation = await findViolation({ module: "mutants", init, step, seed, runs: 1000, steps: 60 });
    console.log(
      `${init}: ${violation ? `${violation.invariants.join(", ")}, seed ${violation.seed}` : "not found"}`,
    );
    if (violation === undefined) process.exitCode = 1;
  }
}

function replay(runs: string): void {
  const env = { ...process.env, ONCEWARD_MODEL_RUNS: runs, ONCEWARD_MODEL_SEED: values.seed };
  const args = ["run", "--project=postgres 18", "test/model/replay"];
  process.exitCode = spawnSync("vitest", args, { env, stdio: "inherit" }).status ?? 1;
}

function search(depth: number): void {
  const { states, contradiction } = searchAll({ keys: Number(values.keys), callers: 2, crashes: 1, depth });
  console.log(`${states} states within ${depth} steps`);
  if (contradiction === undefined) return;
  console.error(contradiction.join("\n"));
  process.exitCode = 1;
}
