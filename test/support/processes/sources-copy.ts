import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const NOT_COPIED = /(^|\/)(node_modules|\.git|\.onceward)(\/|$)/;

/** A text of a source that a defect changes. */
export interface Replacement {
  readonly file: string;
  /** Must occur exactly once; otherwise the replacement is out of date. */
  readonly from: string;
  readonly to: string;
}

/** A copy of sources, in which code is broken on purpose. */
export interface SourcesCopy extends AsyncDisposable {
  /** Returns the path of a file or folder in the copy, by its path from the root. */
  pathOf(path: string): string;
  /** Writes files, by their paths from the root; the result writes what was there. */
  write(texts: ReadonlyMap<string, string>): Promise<() => Promise<unknown>>;
}

/**
 * Returns the files of a folder that replacements change, by their paths from the root, with the text that each gets.
 *
 * @throws Error if a text to replace does not occur exactly once: it has to follow the source.
 */
export async function replaceTexts(
  folder: string,
  replacements: readonly Replacement[],
): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of replacements) {
    const path = `${folder}/${file}`;
    const parts = (texts.get(path) ?? (await readFile(join(ROOT, path), "utf8"))).split(from);
    if (parts.length !== 2)
      throw new Error(`out of date: found ${parts.length - 1} times in ${path}: ${from}`);
    texts.set(path, parts.join(to));
  }
  return texts;
}

/** Copies files and folders, by their paths from the root, beside this version's packages; disposing removes the copy. */
export async function copySources(...paths: readonly string[]): Promise<SourcesCopy> {
  const dir = await mkdtemp(join(tmpdir(), "ow-sources-"));
  const filter = (path: string) => !NOT_COPIED.test(relative(ROOT, path));
  const write = async (texts: ReadonlyMap<string, string>) => {
    const before = new Map<string, string>();
    for (const [path, text] of texts) {
      before.set(path, await readFile(join(dir, path), "utf8"));
      await writeFile(join(dir, path), text);
    }
    return () => write(before);
  };
  const remove = () => rm(dir, { recursive: true, force: true });
  try {
    for (const path of paths)
      await cp(join(ROOT, path), join(dir, path), { recursive: true, filter, verbatimSymlinks: true });
    await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  } catch (error) {
    await remove();
    throw error;
  }
  return { pathOf: (path) => join(dir, path), write, [Symbol.asyncDispose]: remove };
}
