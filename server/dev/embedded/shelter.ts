import { createHash } from "node:crypto";
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { versionOf } from "./binaries.ts";
import { canEnter, type ServerUser } from "./server-user.ts";

/**
 * Where root puts files when the server's user cannot reach ours (a clone under /root). The first that can be made
 * and entered is taken; only the first survives a reboot everywhere.
 */
export const SHELTERS: readonly string[] = ["/var/lib/onceward", join(tmpdir(), "onceward"), "/tmp/onceward"];

/**
 * The first of `shelters` that is ours and that the server's user can enter, created if need be.
 *
 * @throws when there is none.
 */
export async function openShelter(shelters: readonly string[], user: ServerUser): Promise<string> {
  for (const shelter of shelters) {
    try {
      await mkdir(shelter, { recursive: true });
      // In /tmp anybody may have made it first, and what lies in it is going to be run.
      const found = await lstat(shelter);
      if (!found.isDirectory() || found.uid !== process.getuid?.()) continue;
      await chmod(shelter, 0o755);
    } catch {
      continue;
    }
    if (await canEnter(shelter, user)) return shelter;
  }
  throw new Error(`none of ${shelters.join(", ")} can be used as root and entered by user ${user.uid}`);
}

/**
 * A bin directory whose PostgreSQL the server's user can run: the given one, or a copy of its tree in a shelter, made
 * once and shared by all clones.
 *
 * @throws when the copy doesn't run either.
 */
export async function reachableBinaries(
  binDir: string,
  user: ServerUser | undefined,
  shelters: readonly string[],
): Promise<string> {
  if (user === undefined || (await runs(binDir, user))) return binDir;
  const shelter = await openShelter(shelters, user);
  const copy = join(shelter, `postgres-${await fingerprint(binDir)}`);
  if (!(await runs(join(copy, "bin"), user))) await copyTree(dirname(binDir), copy);
  await versionOf(join(copy, "bin"), user);
  return join(copy, "bin");
}

const runs = (binDir: string, user: ServerUser) =>
  versionOf(binDir, user).then(
    () => true,
    () => false,
  );

async function fingerprint(binDir: string): Promise<string> {
  const { size, mtimeMs } = await stat(join(binDir, "postgres"));
  return createHash("sha256").update(`${binDir} ${size} ${mtimeMs}`).digest("hex").slice(0, 12);
}

// Other clones may be copying the same tree: each into its own directory, and a rename decides.
async function copyTree(from: string, to: string): Promise<void> {
  const half = await mkdtemp(`${to}-`);
  try {
    // Static libraries are for compiling extensions.
    const filter = (path: string) => !path.endsWith(".a");
    await cp(from, half, { recursive: true, verbatimSymlinks: true, filter });
    await openToAll(half);
    await rename(half, to);
  } catch (error) {
    await rm(half, { recursive: true, force: true });
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}

// A clone made with a umask of 077 has a tree that only root can read.
async function openToAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}
