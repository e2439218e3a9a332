import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { changedTenfold, type NumericPromise } from "./promise.ts";
import { PROMISES } from "./promises.ts";

/**
 * `npm run check:promises [-- TEXT]`: changes the constant of each promise tenfold in a copy of the sources, and runs the
 * test that must fail then; with TEXT, of the promises whose constant contains it. Exits with 1 if a promise can be broken
 * without a failing test.
 */
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Only a change that makes a test hang reaches it. */
const TIMEOUT_MS = 300_000;
const [only = ""] = process.argv.slice(2);

const copy = await mkdtemp(join(tmpdir(), "ow-promises-"));
const chosen = PROMISES.filter(({ constant }) => constant.includes(only));
let unnoticed = 0;
try {
  await copySources();
  for (const promise of chosen) {
    const noticed = await breaks(promise);
    if (!noticed) unnoticed++;
    process.stdout.write(`${noticed ? "noticed  " : "UNNOTICED"} ${promise.constant}: ${promise.test}\n`);
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length} promises, ${unnoticed} can be broken without a failing test.\n`);
process.exitCode = unnoticed === 0 ? 0 : 1;

async function copySources(): Promise<void> {
  const filter = (path: string) => !/(^|\/)(node_modules|\.git|\.onceward)(\/|$)/.test(relative(ROOT, path));
  await cp(ROOT, copy, { recursive: true, filter });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
}

/** Whether the test of a promise fails when the promise is broken. */
async function breaks({ file, constant, test }: NumericPromise): Promise<boolean> {
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  await writeFile(path, changedTenfold(source, constant));
  const project = test.startsWith("server/") || test.startsWith("test/commands/") ? "unit" : "postgres 18";
  const args = ["vitest", "run", test, "--project", project, "--maxWorkers=1", "--bail=1"];
  const { status } = spawnSync("npx", args, { cwd: copy, timeout: TIMEOUT_MS, stdio: "ignore" });
  await writeFile(path, source);
  return status !== 0;
}
