import { execFile } from "node:child_process";
import { access, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The source of the server before a change of the schema, with the client's, whose messages it imports, and this version's packages. */
export interface PreviousVersion {
  /** The program `onceward-server`. */
  readonly main: string;
  remove(): Promise<void>;
}

/**
 * Finds the last commit before a migration was added, by default the newest one: a server of that version runs on a newer
 * schema. Undefined if git does not have it, as in a shallow clone.
 *
 * A later change of a migration's comments does not count.
 *
 * @param migration the name of a migration.
 */
export async function findPreviousVersion(migration?: string): Promise<string | undefined> {
  const added = migration === undefined ? "server/migrations" : `server/migrations/${migration}.sql`;
  const git = async (...args: string[]) => (await run("git", ["-C", ROOT, ...args])).stdout.trim();
  try {
    await access(join(ROOT, ".git"));
    const newest = await git("log", "-1", "--diff-filter=A", "--format=%H", "--", added);
    return await git("rev-parse", "--verify", "--quiet", `${newest}^`);
  } catch {
    return undefined;
  }
}

/**
 * Lays out the server of a commit in a directory of its own. `package.json` also lists what only older servers import:
 * `@grpc/reflection` and `grpc-health-check`.
 */
export async function layOutVersion(commit: string): Promise<PreviousVersion> {
  const dir = await mkdtemp(join(tmpdir(), "ow-old-version-"));
  await run("sh", ["-c", 'git -C "$1" archive "$2" server clients/typescript | tar -x -C "$3"', "sh", ROOT, commit, dir]);
  await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
  return {
    main: join(dir, "server/src/main.ts"),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}
