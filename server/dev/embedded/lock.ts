import { access, constants } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { waitUntil } from "./wait.ts";

const SQLITE_BUSY = 5;

/**
 * Runs `work` while no other process (and no other caller in this one) holds `lockFile`.
 *
 * The lock is SQLite's on an empty database, because Node has no `flock`. The kernel releases it when its
 * holder dies in any way, so that there are no stale locks. The file stays, empty.
 *
 * @throws Error if the file is not writable, or if another process held the lock for `timeoutMs`.
 */
export async function withLock<T>(lockFile: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  await refuseReadOnly(lockFile);
  using database = new DatabaseSync(lockFile, { timeout: 0 });
  if (!(await waitUntil(() => tryLock(database), timeoutMs))) {
    throw new Error(`another process has held ${lockFile} for ${timeoutMs / 1000} s; is it stuck?`);
  }
  return await work();
}

// SQLite opens a read-only file without an error, and then locks nothing. Do not open the file here: POSIX
// releases all locks of a process on a file when the process closes any descriptor of it.
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
