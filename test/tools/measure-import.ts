import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/**
 * `npm run lab -- import`: prints how long a process without a compile cache takes to import the compiled root of the
 * client: the median of ten runs, in milliseconds. Use an idle machine.
 */
const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RUNS = 10;
const PROGRAM = `
const started = performance.now();
await import("@onceward/client");
console.log(performance.now() - started);
`;

const dir = await mkdtemp(join(tmpdir(), "ow-import-"));
try {
  const client = join(dir, "node_modules/@onceward/client");
  await mkdir(client, { recursive: true });
  await cp(join(ROOT, "clients/typescript/package.json"), join(client, "package.json"));
  const build = join(ROOT, "clients/typescript/tsconfig.build.json");
  await run(process.execPath, [
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "-p",
    build,
    "--outDir",
    join(client, "dist"),
  ]);
  for (const name of ["@bufbuild", "@connectrpc", "@noble", "canonicalize"])
    await symlink(join(ROOT, "node_modules", name), join(dir, "node_modules", name));
  await writeFile(join(dir, "import.mjs"), PROGRAM);
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" };
  const durationsMs: number[] = [];
  for (let count = 0; count < RUNS; count++) {
    const { stdout } = await run(process.execPath, ["import.mjs"], { cwd: dir, env });
    durationsMs.push(Math.round(Number(stdout)));
  }
  durationsMs.sort((one, other) => one - other);
  const median = ((durationsMs[RUNS / 2 - 1] ?? 0) + (durationsMs[RUNS / 2] ?? 0)) / 2;
  process.stdout.write(`median ${median} ms of ${durationsMs.join(", ")}\n`);
} finally {
  await rm(dir, { recursive: true, force: true });
}
