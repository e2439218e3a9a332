import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readCommandLine } from "../../server/dev/command-line.ts";

const USAGE = `npm run check -- [OPTIONS]: everything that has to hold before a change lands, in the order in which it is
cheapest to learn of a mistake.
  --without-tests  for a caller that runs the tests by their own commands`;

const { values } = readCommandLine(USAGE, {
  options: { "without-tests": { type: "boolean", default: false } },
});

step("generated code and tables are current", "npm", ["run", "generate"]);
step("format and lint", "biome", ["ci", "--error-on-warnings", "."]);
step("types", "tsc", []);
step("types of the console", "tsc", ["-p", "clients/console"]);
step("types of the console's tests", "tsc", ["-p", "test/console"]);
step("types of the published client", "tsc", ["-p", "clients/typescript/tsconfig.build.json", "--noEmit"]);
// With the client's source, which has not been built.
const source = ["--customConditions", "@onceward/source", "--rootDir", "clients"];
for (const program of ["cli", "http-proxy", "mcp-proxy"]) {
  const project = `clients/${program}/tsconfig.build.json`;
  step(`types of the published ${program}`, "tsc", ["-p", project, "--noEmit", ...source]);
}
step("unused code and dependencies", "knip", []);
step("proto lint", "buf", ["lint"]);
step("proto compatibility", "buf", ["breaking", "proto", "--against", previousProto()]);
step("nothing generated is left to commit", "git", ["diff", "--exit-code", "--stat"]);
if (!values["without-tests"]) {
  step("tests", "vitest", ["run", "--project=!optional", "--project=!older majors"]);
  if (existsSync("test/on-demand/node_modules"))
    step("tests with large packages, and on other majors", "npm", ["run", "test:on-demand"]);
}
console.log("\nEverything holds.");

function step(name: string, command: string, args: readonly string[]): void {
  console.log(`\n== ${name}: ${command} ${args.join(" ")}`);
  const { status, error } = spawnSync(command, [...args], { stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status !== 0) {
    console.error(`\n${name}: failed`);
    process.exit(1);
  }
}

/**
 * What `proto/` must stay compatible with: main, or, on main itself, proto/ as it was before its last change, so that the
 * change that has just been made is still compared with what was there.
 */
function previousProto(): string {
  const onMain = git("rev-parse", "HEAD") === git("rev-parse", "--verify", "--quiet", "main");
  const changed = git("status", "--porcelain", "--", "proto") !== "";
  const [newest = "HEAD", beforeIt] = git("log", "--format=%H", "-2", "--", "proto").split("\n");
  const commit = !onMain ? "main" : changed || beforeIt === undefined ? newest : beforeIt;
  return `.git#ref=${commit},subdir=proto`;
}

function git(...args: string[]): string {
  return spawnSync("git", args, { encoding: "utf8" }).stdout.trim();
}
