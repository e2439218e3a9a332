import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { BOUNDS, type Bound, changedTenfold } from "./bounds.ts";

/**
 * `npm run lab -- promises [TEXT]`: runs the test of each bound in a copy of the sources, changes its constant there
 * tenfold, and runs the test again, which must fail then; with TEXT, of the bounds whose constant contains it. Exits with 1
 * if a bound can be broken without a failing test, or if a test fails without a change: it notices nothing.
 */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Only a change that makes a test hang reaches it. */
const TIMEOUT_MS = 300_000;
const [only = ""] = process.argv.slice(2);

/** Whether a test passes without a change, by its file. */
const unchanged = new Map<string, boolean>();
const chosen = BOUNDS.filter(({ constant }) => constant.includes(only));
if (chosen.length === 0) {
  console.error(`No bound's constant contains ${only}: bounds.ts names them.`);
  process.exit(2);
}
const copy = await mkdtemp(join(tmpdir(), "ow-promises-"));
let unnoticed = 0;
try {
  await copySources();
  for (const bound of chosen) {
    const verdict = !passes(bound.test)
      ? "FAILS ALSO UNCHANGED"
      : (await breaks(bound))
        ? "noticed"
        : "UNNOTICED";
    if (verdict !== "noticed") unnoticed++;
    process.stdout.write(`${verdict.padEnd(20)} ${bound.constant}: ${bound.test}\n`);
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length} bounds, ${unnoticed} of them held by no test.\n`);
process.exitCode = unnoticed === 0 ? 0 : 1;

async function copySources(): Promise<void> {
  const filter = (path: string) => !/(^|\/)(node_modules|\.git|\.onceward)(\/|$)/.test(relative(ROOT, path));
  await cp(ROOT, copy, { recursive: true, filter });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
}

/** Whether a test passes with the sources as they are. */
function passes(test: string): boolean {
  const known = unchanged.get(test) ?? run(test);
  unchanged.set(test, known);
  return known;
}

/** Whether the test of a bound fails when the bound is broken. */
async function breaks(bound: Bound): Promise<boolean> {
  const path = join(copy, bound.file);
  const source = await readFile(path, "utf8");
  await write(path, changedTenfold(source, bound));
  const isNoticed = !run(bound.test);
  await write(path, source);
  return isNoticed;
}

/** Writes a file; of a proto file, also the code that is generated from it. */
async function write(path: string, text: string): Promise<void> {
  await writeFile(path, text);
  if (path.endsWith(".proto")) spawnSync("npx", ["buf", "generate"], { cwd: copy, stdio: "inherit" });
}

/** Runs a test file in the copy, and returns whether it passes. */
function run(test: string): boolean {
  const project = test.startsWith("server/") || test.startsWith("test/commands/") ? "unit" : "postgres 18";
  const args = ["vitest", "run", test, "--project", project, "--maxWorkers=1", "--bail=1"];
  return spawnSync("npx", args, { cwd: copy, timeout: TIMEOUT_MS, stdio: "ignore" }).status === 0;
}
