import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./", import.meta.url));
const QUINT = createRequire(import.meta.url).resolve("@informalsystems/quint/dist/src/cli.js");
/** The printed states of a violation. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Random runs of a module of this folder. */
export interface Simulation {
  /** The module, and the name of its file. */
  readonly module: string;
  /** The action that begins a run. */
  readonly init: string;
  /** The action that continues a run. */
  readonly step: string;
  readonly seed: number;
  readonly runs: number;
  readonly steps: number;
}

/** The invariants of `protocol.qnt`, by their names, as numbers of the history checker. */
export const INVARIANTS = {
  oneLiveClaim: 1,
  tokensRise: 2,
  resultsAreReplayed: 3,
  onlyTheHolderSettles: 4,
  fingerprintsAgree: 5,
  retentionHolds: 10,
  copiesBelongToTheirInstallation: 16,
  oneLife: 20,
} as const;

/** A run that violates invariants. */
export interface Violation {
  readonly invariants: readonly string[];
  /** The seed that repeats the run as the first one. */
  readonly seed: string;
}

/**
 * Returns the first run that violates an invariant; undefined: none does.
 *
 * @param itfFile where the violating run is stored, in the Informal Trace Format; unset: nowhere.
 * @throws Error if the module has an error.
 */
export async function findViolation(
  simulation: Simulation,
  itfFile?: string,
): Promise<Violation | undefined> {
  const output = await runQuint([
    ...argumentsOf(simulation),
    "--invariants",
    ...Object.keys(INVARIANTS),
    ...(itfFile === undefined ? [] : ["--mbt", "--out-itf", itfFile]),
  ]);
  if (output.includes("[ok]")) return undefined;
  const invariants = [...output.matchAll(/❌ (\w+)/g)].map(([, name]) => name as string);
  const seed = /--seed=(\w+)/.exec(output)?.[1];
  if (invariants.length === 0 || seed === undefined) throw new Error(`quint failed:\n${output}`);
  return { invariants, seed };
}

/** Returns the states of random runs, each a record of the module's variables. Numbers are plain, sets are arrays. */
export async function readRuns(simulation: Simulation): Promise<readonly (readonly unknown[])[]> {
  const folder = await mkdtemp(join(tmpdir(), "onceward-model-"));
  try {
    const output = await runQuint([
      ...argumentsOf(simulation),
      `--n-traces=${simulation.runs}`,
      "--out-itf",
      join(folder, "{seq}.itf.json"),
    ]);
    if (!output.includes("[ok]")) throw new Error(`quint failed:\n${output}`);
    const files = (await readdir(folder)).sort();
    return await Promise.all(files.map(async (file) => readItf(await readFile(join(folder, file), "utf8"))));
  } finally {
    await rm(folder, { recursive: true });
  }
}

function argumentsOf({ module, init, step, seed, runs, steps }: Simulation): string[] {
  return [
    "run",
    `${FOLDER}${module}.qnt`,
    // The other simulator is downloaded when it is first used.
    "--backend=typescript",
    "--verbosity=1",
    `--init=${init}`,
    `--step=${step}`,
    `--seed=${seed}`,
    `--max-samples=${runs}`,
    `--max-steps=${steps}`,
  ];
}

function runQuint(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [QUINT, ...args], { maxBuffer: MAX_OUTPUT_BYTES }, (_error, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

/** Returns the states of a run in the Informal Trace Format (https://apalache-mc.org/docs/adr/015adr-trace.html). */
function readItf(text: string): readonly unknown[] {
  const { states } = JSON.parse(text, (_name, value) => plain(value)) as { readonly states: unknown[] };
  return states;
}

function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("#bigint" in value) return Number(value["#bigint"]);
  if ("#set" in value) return value["#set"];
  if ("#map" in value) return Object.fromEntries(value["#map"] as [string, unknown][]);
  return value;
}
