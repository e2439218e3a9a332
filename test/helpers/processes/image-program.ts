import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

/**
 * `onceward-server` as the image runs it, as arguments for Node: compiled from the source as it is now, with the options in
 * the image's ENTRYPOINT. A command of the server goes after them.
 */
export async function compileImageProgram(): Promise<readonly string[]> {
  await run(process.execPath, [TSC, "--project", "server/tsconfig.build.json"], { cwd: ROOT });
  const dockerfile = await readFile(join(ROOT, "deploy/Dockerfile"), "utf8");
  const [, entrypoint = "[]"] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile) ?? [];
  const [, ...words]: string[] = JSON.parse(entrypoint);
  return words.map((word) => (word.startsWith("--") ? word : join(ROOT, word)));
}
