import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Declarations, parseDeclarations } from "./parse-declarations.ts";

const run = promisify(execFile);
const CLIENT = new URL("../../../clients/typescript/", import.meta.url);
const PROJECT = fileURLToPath(new URL("tsconfig.build.json", CLIENT));
const TSC = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));
const COMPILE_TIMEOUT_MS = 120_000;

/** The client's public API, as its users' compilers see it. */
export interface Surface {
  /** The module of each entry with code: "./http" is "http". */
  readonly entries: ReadonlyMap<string, string>;
  readonly modules: ReadonlyMap<string, Declarations>;
}

/** Compiles the client as it is published, and reads the declarations of its modules. */
export async function readSurface(): Promise<Surface> {
  const dir = await mkdtemp(join(tmpdir(), "ow-declarations-"));
  try {
    const args = [TSC, "-p", PROJECT, "--emitDeclarationOnly", "--outDir", dir];
    await run(process.execPath, args, { timeout: COMPILE_TIMEOUT_MS });
    const modules = new Map<string, Declarations>();
    for (const file of (await readdir(dir, { recursive: true })).sort()) {
      const [, module] = /^(.*)\.d\.ts$/.exec(file) ?? [];
      if (module === undefined) continue;
      modules.set(module, parseDeclarations(module, await readFile(join(dir, file), "utf8")));
    }
    return { entries: await readEntries(), modules };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function readEntries(): Promise<ReadonlyMap<string, string>> {
  const { exports } = JSON.parse(await readFile(new URL("package.json", CLIENT), "utf8")) as {
    exports: Record<string, string | { types: string }>;
  };
  return new Map(
    Object.entries(exports).flatMap(([entry, target]) => {
      if (typeof target === "string") return [];
      return [[entry, target.types.replace(/^\.\/dist\/(.*)\.d\.ts$/, "$1")]];
    }),
  );
}
