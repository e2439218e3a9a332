import { execFile } from "node:child_process";
import { access, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { anyReplica, type Fault, last } from "./fault.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Old and new versions side by side, as during a rollout. */
export const VERSION_FAULTS: readonly Fault[] = [
  {
    name: "replica-old-version",
    target: "replica",
    async inject(scene) {
      const commit = await previousVersion();
      if (commit === undefined) return;
      const replica = anyReplica(scene);
      const dir = await mkdtemp(join(tmpdir(), "ow-old-version-"));
      try {
        await run("sh", ["-c", 'git -C "$1" archive "$2" server | tar -x -C "$3"', "sh", ROOT, commit, dir]);
        await symlink(join(ROOT, "node_modules"), join(dir, "node_modules"));
        await replica.restart({ main: join(dir, "server/src/main.ts") });
        await last(scene, 5000, 10_000);
      } finally {
        await replica.restart();
        await rm(dir, { recursive: true, force: true });
      }
    },
    whyNot: async () =>
      (await previousVersion()) === undefined
        ? "the clone is too shallow to hold the old version"
        : undefined,
  },
];

/**
 * Finds the last commit before the newest change of the schema: a server of that version runs on a newer
 * schema. Undefined if git does not have it.
 */
async function previousVersion(): Promise<string | undefined> {
  const git = async (...args: string[]) => (await run("git", ["-C", ROOT, ...args])).stdout.trim();
  try {
    await access(join(ROOT, ".git"));
    const newest = await git("log", "-1", "--format=%H", "--", "server/migrations");
    return await git("rev-parse", "--verify", "--quiet", `${newest}^`);
  } catch {
    return undefined;
  }
}
