import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { copySources } from "../../support/processes/sources-copy.ts";
import { BOUNDS, type Bound, changedTenfold } from "./bounds.ts";

/**
 * `npm run lab -- promises [TEXT]`: runs the test of each bound in a copy of the sources, changes its constant there
 * tenfold, and runs the test again, which must fail then; with TEXT, of the bounds whose constant contains it. Exits with 1
 * if a bound can be broken without a failing test, or if a test fails without a change: it notices nothing.
 */

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
await using copy = await copySources(".");
const root = copy.pathOf(".");
let unnoticed = 0;
for (const bound of chosen) {
  const verdict = !passes(bound.test)
    ? "FAILS ALSO UNCHANGED"
    : (await breaks(bound))
      ? "noticed"
      : "UNNOTICED";
  if (verdict !== "noticed") unnoticed++;
  process.stdout.write(`${verdict.padEnd(20)} ${bound.constant}: ${bound.test}\n`);
}
process.stdout.write(`${chosen.length} bounds, ${unnoticed} of them held by no test.\n`);
process.exitCode = unnoticed === 0 ? 0 : 1;

/** Whether a test passes with the sources as they are. */
function passes(test: string): boolean {
  const known = unchanged.get(test) ?? run(test);
  unchanged.set(test, known);
  return known;
}

/** Whether the test of a bound fails when the bound is broken. */
async function breaks(bound: Bound): Promise<boolean> {
  const source = await readFile(copy.pathOf(bound.file), "utf8");
  const undo = await copy.write(new Map([[bound.file, changedTenfold(source, bound)]]));
  generate(bound.file);
  const isNoticed = !run(bound.test);
  await undo();
  generate(bound.file);
  return isNoticed;
}

function generate(file: string): void {
  if (file.endsWith(".proto")) spawnSync("npx", ["buf", "generate"], { cwd: root, stdio: "inherit" });
}

/** Runs a test file in the copy, and returns whether it passes. */
function run(test: string): boolean {
  const project = test.startsWith("server/") || test.startsWith("test/commands/") ? "unit" : "service";
  const args = ["vitest", "run", test, "--project", project, "--maxWorkers=1", "--bail=1"];
  return spawnSync("npx", args, { cwd: root, timeout: TIMEOUT_MS, stdio: "ignore" }).status === 0;
}
