import { createHash } from "node:crypto";
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { versionOf } from "./binaries.ts";
import { canEnter, type ServerUser } from "./server-user.ts";

/**
 * Directories for root's files if the server's user cannot reach the clone (under /root). The first that can
 * be created and entered is used. Only the first survives a reboot on every system.
 */
export const SHELTERS: readonly string[] = ["/var/lib/onceward", join(tmpdir(), "onceward"), "/tmp/onceward"];

/**
 * Returns the first of `shelters` that we own and that the server's user can enter; creates it if needed.
 *
 * @throws Error if there is none.
 */
export async function openShelter(shelters: readonly string[], user: ServerUser): Promise<string> {
  for (const shelter of shelters) {
    try {
      await mkdir(shelter, { recursive: true });
      // In /tmp another user may have created it, and its files would be executed.
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
 * Returns a bin directory whose PostgreSQL the server's user can run: the given one, or a copy of its tree in
 * a shelter, which all clones share.
 *
 * @throws Error if the copy does not run either.
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

// Other clones may copy the same tree at once: each copies into its own directory, and the first rename wins.
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

// With a umask of 077, only root can read the tree of a clone.
async function openToAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}
