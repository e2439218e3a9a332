import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ROOT, run } from "./commands.ts";
import type { Stage } from "./stage.ts";

/** The modules within the Go client's: their dependencies are not the client's, and they are not in its zip. */
const NESTED_MODULES = ["examples", "inboxtest"];

/** Packs the Go client as the proxy of modules does, without nested modules. Returns the file's name. */
export async function packGoModule({ commit, version, addresses }: Stage, outDir: string): Promise<string> {
  const name = `onceward-go-${version}.zip`;
  const prefix = `--prefix=${addresses.goModule}@v${version}/`;
  const output = `--output=${join(outDir, name)}`;
  const tree = `${commit}:clients/go`;
  const excluded = NESTED_MODULES.map((module) => `:(exclude)${module}`);
  await run(ROOT, ["git", "archive", "--format=zip", prefix, output, tree, "--", ".", ...excluded]);
  return name;
}

/** Builds the wheel and the sdist of the Python client with its build back end, from PyPI. Returns the files' names. */
export async function packPython(stage: Stage, outDir: string): Promise<readonly string[]> {
  const environment = join(stage.dir, ".python");
  await run(stage.dir, ["python3", "-m", "venv", environment]);
  await run(stage.dir, [
    join(environment, "bin/python"),
    "-m",
    "pip",
    "install",
    "--quiet",
    "hatchling>=1.27",
  ]);
  const before = new Set(await readdir(outDir));
  await run(join(stage.dir, "clients/python"), [join(environment, "bin/hatchling"), "build", "-d", outDir]);
  return (await readdir(outDir)).filter((file) => !before.has(file)).sort();
}

/** Returns whether a program can be started. */
export function hasProgram(program: string, ...args: readonly string[]): Promise<boolean> {
  return run(ROOT, [program, ...args]).then(
    () => true,
    () => false,
  );
}
