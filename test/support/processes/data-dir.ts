import { access, chmod, constants, mkdtemp, realpath, statfs } from "node:fs/promises";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";

/** Linux' file system in memory. */
const MEMORY_DIR = "/dev/shm";
/** Several times what all tests together store at a time; containers often have 64 MiB there. */
const MIN_FREE_BYTES = 4 * 1024 ** 3;

/**
 * Creates a directory for the data of a test's database or program, and returns its path. Any user can enter
 * it: where tests run as root, Postgres runs as another user. It lies in memory where there is room: Postgres
 * copies a database ten times faster there, and creates a cluster twice as fast. The caller removes it.
 */
export async function makeDataDir(prefix: string): Promise<string> {
  const parent = (await hasRoom(MEMORY_DIR)) ? MEMORY_DIR : tmpdir();
  const dir = await realpath(await mkdtemp(join(parent, prefix)));
  await chmod(dir, 0o755);
  return dir;
}

async function hasRoom(dir: string): Promise<boolean> {
  try {
    await access(dir, constants.W_OK);
    const { bavail, bsize } = await statfs(dir);
    return Math.min(bavail * bsize, freemem()) >= MIN_FREE_BYTES;
  } catch {
    return false;
  }
}
