import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutants.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A copy of the server with a defect. */
export interface MutantServer extends AsyncDisposable {
  /** Its `server/src/main.ts`. */
  readonly main: string;
}

/**
 * Copies the server and applies the mutant; disposing removes the copy.
 *
 * @throws Error if a text to replace does not occur exactly once: the mutant has to follow the source.
 */
export async function applyMutant({ name, replacements }: Mutant): Promise<MutantServer> {
  const dir = await mkdtemp(join(tmpdir(), "ow-mutant-"));
  try {
    await cp(join(ROOT, "server"), join(dir, "server"), { recursive: true });
    await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
    for (const { file, from, to } of replacements) {
      const path = join(dir, "server/src", file);
      const text = await readFile(path, "utf8");
      const found = text.split(from).length - 1;
      if (found !== 1) throw new Error(`${name} is out of date: found ${found} times in ${file}: ${from}`);
      // A function, so that $ in the text has no special meaning.
      await writeFile(
        path,
        text.replace(from, () => to),
      );
    }
    return {
      main: join(dir, "server/src/main.ts"),
      [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
    };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}
