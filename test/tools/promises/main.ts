import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { changedTenfold, type NumericPromise } from "./promise.ts";
import { PROMISES } from "./promises.ts";

/**
 * `npm run check:promises [-- TEXT]`: runs the test of each promise in a copy of the sources, changes its constant there
 * tenfold, and runs the test again, which must fail then; with TEXT, of the promises whose constant contains it. Exits with 1
 * if a promise can be broken without a failing test, or if a test fails without a change: it notices nothing.
 */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Only a change that makes a test hang reaches it. */
const TIMEOUT_MS = 300_000;
const [only = ""] = process.argv.slice(2);

const copy = await mkdtemp(join(tmpdir(), "ow-promises-"));
/** Whether a test passes without a change, by its file. */
const unchanged = new Map<string, boolean>();
const chosen = PROMISES.filter(({ constant }) => constant.includes(only));
let unnoticed = 0;
try {
  await copySources();
  for (const promise of chosen) {
    const verdict = !passes(promise.test)
      ? "FAILS ANYWAY"
      : (await breaks(promise))
        ? "noticed"
        : "UNNOTICED";
    if (verdict !== "noticed") unnoticed++;
    process.stdout.write(`${verdict.padEnd(12)} ${promise.constant}: ${promise.test}\n`);
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length} promises, ${unnoticed} of them held by no test.\n`);
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

/** Whether the test of a promise fails when the promise is broken. */
async function breaks({ file, constant, test }: NumericPromise): Promise<boolean> {
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  await writeFile(path, changedTenfold(source, constant));
  const isNoticed = !run(test);
  await writeFile(path, source);
  return isNoticed;
}

/** Runs a test file in the copy, and returns whether it passes. */
function run(test: string): boolean {
  const project = test.startsWith("server/") || test.startsWith("test/commands/") ? "unit" : "postgres 18";
  const args = ["vitest", "run", test, "--project", project, "--maxWorkers=1", "--bail=1"];
  return spawnSync("npx", args, { cwd: copy, timeout: TIMEOUT_MS, stdio: "ignore" }).status === 0;
}
