import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { PACKAGE_DIRS } from "../../../deploy/release/stage.ts";
import type { Words } from "./shell.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string) => readFileSync(`${ROOT}${path}`, "utf8");
const json = (path: string) => JSON.parse(read(path));
const { scripts, devDependencies, workspaces } = json("package.json");
/** What a release publishes, which `release:dry` and `test/packaging/` install in an empty folder. */
const OWN_PACKAGES = PACKAGE_DIRS.map((dir) => String(json(`${dir}/package.json`).name));
/** Versions that are installed at night for the suites that need them. */
const NIGHTLY = read(".github/workflows/nightly.yml");
const PYPROJECT = read("clients/python/pyproject.toml");
const PROJECTS = read("vitest.config.ts");

/** A checkout is beside the reader's folder: `../onceward/clients/python`. */
const inCheckout = (path: string) => path.replace(/^(\.\.|\/path\/to)\/onceward(\/|$)/, "./");

function optionOf(words: Words, option: string): string | undefined {
  const at = words.indexOf(option);
  return at === -1 ? undefined : words[at + 1];
}

/** Returns what is wrong with a command of `npm`. */
export function npmProblem(words: Words): string | undefined {
  const end = words.indexOf("--");
  const before = end === -1 ? words : words.slice(0, end);
  const prefix = optionOf(before, "--prefix");
  if (prefix !== undefined && inCheckout(prefix) !== "./") return `${prefix} is not a checkout`;
  const workspace = optionOf(before, "--workspace");
  if (workspace !== undefined && !workspaces.includes(workspace)) return `no workspace ${workspace}`;
  const [name = "", ...others] = before.filter(
    (word) => !word.startsWith("--") && word !== prefix && word !== workspace,
  );
  if (name === "run" || name === "start" || name === "test") {
    const [script = name] = name === "run" ? others : [];
    return script in scripts ? undefined : `package.json has no script ${script}`;
  }
  if (name === "ci" || name === "pack") return undefined;
  if (name !== "install") return `npm ${name} is not checked`;
  const unknown = others.find((each) => !isInstalled(each));
  return unknown && `no test installs ${unknown}`;
}

function isInstalled(name: string): boolean {
  if (name.startsWith("./"))
    return OWN_PACKAGES.includes(name.replace(/^\.\/onceward-(.*)-\*\.tgz$/, "@onceward/$1"));
  return name.startsWith("@onceward/") ? OWN_PACKAGES.includes(name) : name in devDependencies;
}

/** Returns what is wrong with a command of `npx`: programs of our packages, `buf`, `tsc` and `vitest`. */
export function npxProblem(words: Words): string | undefined {
  const [program = "", ...args] =
    words[0] === "--prefix" ? words.slice(2) : words.filter((word) => word !== "--yes");
  if (program.startsWith("@onceward/"))
    return OWN_PACKAGES.includes(program) ? undefined : `no package ${program}`;
  const folder = optionOf(args, "-p") ?? "";
  if (program === "tsc")
    return existsSync(`${ROOT}${folder}/tsconfig.json`) ? undefined : `no ${folder}/tsconfig.json`;
  if (program === "buf")
    return args.map(inCheckout).find((path) => path.startsWith("./") && !existsSync(`${ROOT}${path}`));
  return program === "vitest" ? vitestProblem(args) : `npx ${program} is not checked`;
}

function vitestProblem([run, ...args]: Words): string | undefined {
  if (run !== "run") return `vitest ${run} is not checked`;
  const at = args.indexOf("--project");
  const project = args[at + 1];
  if (at !== -1 && !PROJECTS.includes(`"${project}"`)) return `vitest.config.ts has no project ${project}`;
  const files = args.filter((_, index) => at === -1 || (index !== at && index !== at + 1));
  return files.find((file) => !file.includes("FILE") && !existsSync(`${ROOT}${file}`));
}

/** Returns what is wrong with a command of `pip`: it takes the Python client, what that needs, or what a nightly job installs. */
export function pipProblem([name, ...words]: Words): string | undefined {
  if (name !== "install" && name !== "download") return `pip ${name} is not checked`;
  const unknown = words.filter((word) => !word.startsWith("-")).find((word) => !isPythonPackage(word));
  return unknown && `no test installs ${unknown}`;
}

function isPythonPackage(word: string): boolean {
  if (word === "onceward") return PYPROJECT.includes('\nname = "onceward"\n');
  const [, extras] = /^\.\[(.*)\]$/.exec(word) ?? [];
  if (extras !== undefined) return extras.split(",").every((extra) => PYPROJECT.includes(`\n${extra} = [`));
  const path = inCheckout(word);
  if (path !== word) return existsSync(`${ROOT}${path}/pyproject.toml`);
  return NIGHTLY.includes(` ${word}${word.includes("==") ? "" : "=="}`) || PYPROJECT.includes(`  "${word}>=`);
}

/** Returns what is wrong with a command of `go`. */
export function goProblem([name, ...words]: Words): string | undefined {
  if (name === "install") {
    const [module = ""] = words[0]?.split("@") ?? [];
    return NIGHTLY.includes(`go install ${module}@`) ? undefined : `no nightly job installs ${module}`;
  }
  const folder = words.find((word) => /^\.\/\w/.test(word));
  if (name === "run" && folder !== undefined)
    return existsSync(`${ROOT}clients/go/examples/${folder}`)
      ? undefined
      : `clients/go/examples has no ${folder}`;
  return name === "mod" || name === "run" || name === "vet" || name === "test"
    ? undefined
    : `go ${name} is not checked`;
}
