import { access, constants } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { waitUntil } from "./wait.ts";

const SQLITE_BUSY = 5;

/**
 * Runs `work` while no other process (and no other caller in this one) holds `lockFile`.
 *
 * The lock is SQLite's on an empty database, because Node has no `flock`: the kernel releases it when its holder
 * dies, however it dies, so there is no stale lock to judge and no race in judging it. The file stays, empty.
 *
 * @throws when the file is not writable, or another process held it for all of `timeoutMs`.
 */
export async function withLock<T>(lockFile: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  await refuseReadOnly(lockFile);
  using database = new DatabaseSync(lockFile, { timeout: 0 });
  if (!(await waitUntil(() => tryLock(database), timeoutMs))) {
    throw new Error(`another process has held ${lockFile} for ${timeoutMs / 1000} s; is it stuck?`);
  }
  return await work();
}

// SQLite opens a file it may not write all the same, and then locks nothing. The file must not be opened here: POSIX
// drops all of a process's locks on a file when the process closes any descriptor of it.
async function refuseReadOnly(lockFile: string): Promise<void> {
  try {
    await access(lockFile, constants.W_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec("begin exclusive");
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}
