import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

/**
 * `npm run lab -- nodes`: installs the supported majors of Node from npm's registry into a temporary folder, and runs the
 * tests of the package that run "on every Node that is here" with them.
 */
const MAJORS = [22, 24, 26];
const TESTS = ["test/packaging/package.test.ts", "test/packaging/first-example.test.ts"];

const run = promisify(execFile);
const dir = await mkdtemp(join(tmpdir(), "ow-nodes-"));
try {
  const paths: string[] = [];
  for (const major of MAJORS) {
    const home = join(dir, String(major));
    await mkdir(home);
    await writeFile(join(home, "package.json"), JSON.stringify({ private: true }));
    // The package `node` only downloads this one.
    const name = `node-${process.platform}-${process.arch}`;
    await run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", `${name}@${major}`], {
      cwd: home,
    });
    paths.push(join(home, "node_modules", name, "bin"));
  }
  // npm and the tests themselves run on the Node of this process, which comes first.
  const PATH = [process.env.PATH, ...paths].join(delimiter);
  const vitest = spawn("npx", ["vitest", "run", "--project", "tools", ...TESTS], {
    stdio: "inherit",
    env: { ...process.env, PATH },
  });
  const [code] = await once(vitest, "exit");
  process.exitCode = code ?? 1;
} finally {
  await rm(dir, { recursive: true, force: true });
}
