import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const BUILT = fileURLToPath(new URL("../console/", import.meta.url));
const PAGE = "index.html";
const SOURCE = fileURLToPath(new URL("../../clients/console/", import.meta.url));

/**
 * Builds the console's page into `server/console/` if it is missing, as in a fresh clone. A failure is printed and is not an
 * error: the server runs without the page. Concurrent starts may build at the same time; the first finished build stays.
 */
export async function ensureConsole(print: (line: string) => void, stopping: () => boolean): Promise<void> {
  if (isBuilt()) return;
  print("Building the console ...");
  try {
    await buildConsole();
  } catch (error) {
    if (!isBuilt() && !stopping()) {
      print(`Continuing without the console: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/**
 * Builds the console's page into `server/console/`. A page that is the same stays, because servers that start meanwhile read its
 * files. @throws Error if the build fails.
 */
export async function buildConsole(): Promise<void> {
  const draft = join(dirname(BUILT), `console-${process.pid}.draft`);
  try {
    await runVite(draft);
    if (isBuilt() && (await pageOf(draft)) === (await pageOf(BUILT))) return;
    await rm(BUILT, { recursive: true, force: true });
    await rename(draft, BUILT);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function isBuilt(): boolean {
  return existsSync(join(BUILT, PAGE));
}

/** Returns the text of a built page. It names each file by a hash of its content. */
function pageOf(dir: string): Promise<string> {
  return readFile(join(dir, PAGE), "utf8");
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
