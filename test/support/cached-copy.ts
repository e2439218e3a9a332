import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { makeDataDir } from "./processes/data-dir.ts";

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));

/** A directory that is made once for all processes. */
export interface CachedDir {
  readonly kind: string;
  /** Of what decides its contents. */
  readonly inputs: readonly (string | Buffer)[];
  /** Makes it, in a directory that any user can enter. */
  readonly make: (dir: string) => Promise<void>;
}

/** Makes `to` a copy of the directory, which is kept in `node_modules` until its inputs change. */
export async function copyCached({ kind, inputs, make }: CachedDir, to: string): Promise<void> {
  const hash = createHash("sha256");
  for (const input of inputs) hash.update(input);
  const original = join(CACHE, `${kind}-${hash.digest("hex").slice(0, 12)}`);
  if (!(await exists(original))) {
    const dir = await makeDataDir("ow-cached-");
    try {
      await make(join(dir, "made"));
      await copy(join(dir, "made"), original);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
    // Copies that other processes are making of this one have longer names.
    const old = (await readdir(CACHE)).filter(
      (name) => name.startsWith(`${kind}-`) && !name.startsWith(basename(original)),
    );
    for (const name of old) await rm(join(CACHE, name), { recursive: true, force: true });
  }
  await copy(original, to);
}

/**
 * Copies a directory with owners and modes, without which Postgres refuses the data. Of processes that do this at the same time, the
 * first rename wins.
 */
async function copy(from: string, to: string): Promise<void> {
  const half = `${to}-${randomUUID()}`;
  await mkdir(dirname(to), { recursive: true });
  try {
    await run("cp", ["-a", from, half]);
    await rename(half, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

/** Returns whether a path exists. */
export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
