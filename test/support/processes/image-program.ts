import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

/**
 * Compiles the current source of `onceward-server`, and returns Node's arguments that run it like the image,
 * with the options of the image's ENTRYPOINT. A command of the server is appended to them.
 */
export async function compileImageProgram(): Promise<readonly string[]> {
  await run(process.execPath, [TSC, "--project", "server/tsconfig.build.json"], { cwd: ROOT });
  const dockerfile = await readFile(join(ROOT, "deploy/Dockerfile"), "utf8");
  // The server's image is the last stage.
  const [, entrypoint = "[]"] = [...dockerfile.matchAll(/^ENTRYPOINT (\[.*\])$/gm)].at(-1) ?? [];
  const [, ...words]: string[] = JSON.parse(entrypoint);
  return words.map((word) => (word.startsWith("--") ? word : join(ROOT, word)));
}
