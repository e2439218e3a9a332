import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutants.ts";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** A copy of the server with a defect. */
export interface MutantServer extends AsyncDisposable {
  /** Its `server/src/main.ts`. */
  readonly main: string;
}

/**
 * Returns the files that a mutant changes, by their paths below `server/src`, with the text that each gets.
 *
 * @throws Error if a text to replace does not occur exactly once: the mutant has to follow the source.
 */
export async function mutatedFiles({ name, replacements }: Mutant): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of replacements) {
    const text = texts.get(file) ?? (await readFile(join(ROOT, "server/src", file), "utf8"));
    const found = text.split(from).length - 1;
    if (found !== 1) throw new Error(`${name} is out of date: found ${found} times in ${file}: ${from}`);
    // A function, so that $ in the text has no special meaning.
    texts.set(
      file,
      text.replace(from, () => to),
    );
  }
  return texts;
}

/**
 * Copies the server and applies the mutant; disposing removes the copy.
 *
 * @throws Error as `mutatedFiles`.
 */
export async function applyMutant(mutant: Mutant): Promise<MutantServer> {
  const texts = await mutatedFiles(mutant);
  const dir = await mkdtemp(join(tmpdir(), "ow-mutant-"));
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    await cp(join(ROOT, "server"), join(dir, "server"), { recursive: true });
    await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
    for (const [file, text] of texts) await writeFile(join(dir, "server/src", file), text);
    return { main: join(dir, "server/src/main.ts"), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
