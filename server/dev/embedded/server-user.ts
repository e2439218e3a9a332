import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const CD_TIMEOUT_MS = 10_000;

/** The operating system's user that runs PostgreSQL, if it is not this process' user. */
export type ServerUser = { readonly uid: number; readonly gid: number };

/**
 * Selects the user that runs PostgreSQL: this process' user (undefined) or, because PostgreSQL refuses to run
 * as root, the owner of existing data or else `nobody`.
 *
 * @throws Error if the data belongs to another user, and on a platform without users (Windows).
 */
export async function chooseServerUser(dataDir: string): Promise<ServerUser | undefined> {
  const uid = process.getuid?.();
  if (uid === undefined) throw new Error("the embedded PostgreSQL needs Linux or macOS; set DATABASE_URL");
  const owner = await ownerOfCluster(dataDir);
  if (uid !== 0) {
    if (owner === undefined || owner.uid === uid) return undefined;
    throw new Error(
      `${dataDir} belongs to user ${owner.uid}, probably because it was created by a run as root; ` +
        `we are user ${uid}: run as root again, or remove it to start with empty data`,
    );
  }
  return owner === undefined || owner.uid === 0 ? await nobody() : owner;
}

/**
 * Returns whether that user can enter a directory. Tries it, because modes, ACLs and mounts all matter.
 *
 * @throws Error if a signal ended the attempt, such as Ctrl-C in a terminal.
 */
export async function canEnter(dir: string, user: ServerUser): Promise<boolean> {
  try {
    // Not `cwd: dir`, because libuv changes the directory before the user.
    await run("/bin/sh", ["-c", 'cd "$1"', "sh", dir], { cwd: "/", timeout: CD_TIMEOUT_MS, ...user });
    return true;
  } catch (error) {
    const { signal, killed } = error as { readonly signal?: string | null; readonly killed?: boolean };
    if (signal && !killed) throw error;
    return false;
  }
}

async function ownerOfCluster(dataDir: string): Promise<ServerUser | undefined> {
  try {
    const { uid, gid } = await stat(dataDir);
    // EACCES means that the directory does not belong to the user either.
    await stat(join(dataDir, "PG_VERSION")).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EACCES") throw error;
    });
    return { uid, gid };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function nobody(): Promise<ServerUser> {
  for (const line of (await readFile("/etc/passwd", "utf8")).split("\n")) {
    const [name, , uid, gid] = line.split(":");
    if (name === "nobody") return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("PostgreSQL refuses to run as root, and /etc/passwd has no user 'nobody' to run it as");
}
