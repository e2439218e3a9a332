import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Defect } from "./defects.ts";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const CLIENT = "clients/typescript";
const CONFORMANCE = "clients/conformance/src";

/** A copy of the TypeScript client and of its adapter. */
export interface Copy extends AsyncDisposable {
  /** Changes the client; `undo` takes the change back. @throws Error if the text does not occur exactly once. */
  readonly apply: (defect: Defect) => Promise<{ readonly undo: () => Promise<void> }>;
  /** The folder of the runner's sources, with a slash at its end. */
  readonly source: string;
}

/** Copies the client; disposing removes the copy. */
export async function copyClient(): Promise<Copy> {
  const dir = await mkdtemp(join(tmpdir(), "ow-defect-"));
  await cp(join(ROOT, CLIENT, "src"), join(dir, CLIENT, "src"), { recursive: true });
  await cp(join(ROOT, CLIENT, "package.json"), join(dir, CLIENT, "package.json"));
  await cp(join(ROOT, CONFORMANCE), join(dir, CONFORMANCE), { recursive: true });
  await cp(join(ROOT, "package.json"), join(dir, "package.json"));
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return {
    source: `${join(dir, CONFORMANCE)}/`,
    async apply({ name, file, from, to }) {
      const path = join(dir, CLIENT, "src", file);
      const text = await readFile(path, "utf8");
      const found = text.split(from).length - 1;
      if (found !== 1) throw new Error(`"${name}" is out of date: found ${found} times in ${file}: ${from}`);
      // A function, so that $ in the text has no special meaning.
      await writeFile(
        path,
        text.replace(from, () => to),
      );
      return { undo: () => writeFile(path, text) };
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}
