import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./", import.meta.url));
const require = createRequire(import.meta.url);
const QUINT = require.resolve("@informalsystems/quint/dist/src/cli.js");
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
  firstAnswerRepeats: 3,
  onlyTheHolderSettles: 4,
  fingerprintsAgree: 5,
  retentionHolds: 10,
  copiesBelongToTheirInstallation: 16,
  oneLife: 20,
  heldLeasesStay: 21,
  searchChangesNothing: 22,
  pendingIsFree: 23,
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
  const typechecked = await typecheckedModule(simulation.module);
  const invariants = Object.keys(INVARIANTS);
  const { module, seed, runs: maxSamples, steps: maxSteps, ...actions } = simulation;
  const args = {
    ...{ input: fileOf(module), backend: "typescript", verbosity: 1, nTraces: 1 },
    ...{ invariants, invariant: "true", witnesses: [], hide: [], ...actions, maxSamples, maxSteps },
    ...{ seed: BigInt(seed), mbt: itfFile !== undefined, outItf: itfFile },
  };
  const { output, result } = printedBy(() => commands.runSimulator({ ...typechecked, args }));
  const { value } = await result;
  if (output.includes("[ok]")) return undefined;
  const violated = [...output.matchAll(/❌ (\w+)/g)].map(([, name]) => name as string);
  const violatingSeed = value.stage?.seed;
  if (violated.length === 0 || violatingSeed === undefined)
    throw new Error(`quint failed:\n${output}${value.msg}`);
  return { invariants: violated, seed: `0x${violatingSeed.toString(16)}` };
}

/** What a command of Quint passes to the next one. */
interface Stage {
  readonly seed?: bigint;
}

/** A stage, or, on the left, what failed. */
interface Either {
  isLeft(): boolean;
  readonly value: Stage & { readonly msg?: string; readonly stage?: Stage };
}

type Command = (stage: object) => Promise<Either>;

/** The commands of Quint's command line. To read and check a module takes seconds: its process would do it for each simulation. */
const commands: Readonly<
  Record<"load" | "parse" | "typecheck" | "runSimulator", Command>
> = require("@informalsystems/quint/dist/src/cliCommands.js");

const modules = new Map<string, Promise<Stage>>();

/** Returns a module that was read and checked, once for all simulations. */
function typecheckedModule(name: string): Promise<Stage> {
  const known = modules.get(name) ?? readModule(name);
  modules.set(name, known);
  return known;
}

async function readModule(name: string): Promise<Stage> {
  let stage: object = { input: fileOf(name) };
  for (const command of [commands.load, commands.parse, commands.typecheck]) {
    const result = await command(stage);
    if (result.isLeft()) throw new Error(`quint: ${name}: ${result.value.msg}`);
    stage = result.value;
  }
  return stage;
}

/** Calls a function, and returns what it returns and what it prints before: Quint's simulator prints which invariants are violated. */
function printedBy<Result>(call: () => Result): { readonly output: string; readonly result: Result } {
  const lines: string[] = [];
  const { log } = console;
  console.log = (...texts: unknown[]) => void lines.push(texts.join(" "));
  try {
    return { result: call(), output: lines.join("\n") };
  } finally {
    console.log = log;
  }
}

const fileOf = (module: string) => `${FOLDER}${module}.qnt`;

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
    fileOf(module),
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
