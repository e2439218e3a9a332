import { execFile } from "node:child_process";
import { access, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The source of the server before a change of what it stores, with the client's, whose messages it imports, and this version's packages. */
export interface PreviousVersion {
  /** The program `onceward-server`. */
  readonly main: string;
  remove(): Promise<void>;
}

/**
 * Finds the last commit before the newest migration was added: a server of that version runs on a newer schema. Undefined
 * if git does not have it, as in a shallow clone.
 *
 * A later change of a migration's comments does not count.
 *
 * @param change selects another change than that, as `git log` does.
 */
export async function findPreviousVersion(
  change: readonly string[] = ["--diff-filter=A", "--", "server/migrations"],
): Promise<string | undefined> {
  const git = async (...args: string[]) => (await run("git", ["-C", ROOT, ...args])).stdout.trim();
  try {
    await access(join(ROOT, ".git"));
    const newest = await git("log", "-1", "--format=%H", ...change);
    return await git("rev-parse", "--verify", "--quiet", `${newest}^`);
  } catch {
    return undefined;
  }
}

/** Lays out the server of a commit in a directory of its own. */
export async function layOutVersion(commit: string): Promise<PreviousVersion> {
  const dir = await mkdtemp(join(tmpdir(), "ow-old-version-"));
  await run("sh", [
    "-c",
    'git -C "$1" archive "$2" server clients/typescript | tar -x -C "$3"',
    "sh",
    ROOT,
    commit,
    dir,
  ]);
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return {
    main: join(dir, "server/src/main.ts"),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}
