import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const BUILT = fileURLToPath(new URL("../console/", import.meta.url));
const SOURCE = fileURLToPath(new URL("../../clients/console/", import.meta.url));

/**
 * Builds the console's page into `server/console/` if it is missing, as in a fresh clone. A failure is printed and is no
 * error: the server runs without the page. Concurrent starts may build at the same time; the first finished build stays.
 */
export async function ensureConsole(print: (line: string) => void, stopping: () => boolean): Promise<void> {
  if (isBuilt()) return;
  print("Building the console ...");
  const draft = join(dirname(BUILT), `console-${process.pid}.draft`);
  try {
    await runVite(draft);
    if (!isBuilt()) {
      // What an interrupted build left.
      await rm(BUILT, { recursive: true, force: true });
      await rename(draft, BUILT);
    }
  } catch (error) {
    if (!isBuilt() && !stopping()) {
      print(`Continuing without the console: ${error instanceof Error ? error.message : error}`);
    }
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function isBuilt(): boolean {
  return existsSync(join(BUILT, "index.html"));
}

async function runVite(outDir: string): Promise<void> {
  const program = join(dirname(createRequire(SOURCE).resolve("vite/package.json")), "bin/vite.js");
  const args = [program, "build", "--logLevel", "error", "--outDir", outDir];
  const vite = spawn(process.execPath, args, { cwd: SOURCE, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  vite.stderr.on("data", (text) => {
    said += text;
  });
  const { promise: exited, resolve, reject } = Promise.withResolvers<number | null>();
  vite.on("close", resolve).on("error", reject);
  const exitCode = await exited;
  if (exitCode !== 0) throw new Error(`its build failed: ${said.trim() || `exit code ${exitCode}`}`);
}
