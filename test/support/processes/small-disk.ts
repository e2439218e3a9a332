import { execFile } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isAlive } from "../../../server/dev/embedded/pid-file.ts";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";

const run = promisify(execFile);
/** Holds the data of a long run with a standby, and is small enough to be filled quickly. */
const SIZE_MB = 1500;
const DEATH_TIMEOUT_MS = 10_000;

/**
 * A directory for a run's data, on its own disk where one can be mounted; disposing kills processes that use
 * it.
 */
export interface Disk extends AsyncDisposable {
  readonly dir: string;
  /** Fills the disk; undefined: none could be mounted, and the machine's own must not be filled. */
  readonly fill: (() => Promise<void>) | undefined;
  /** Removes the file that `fill` wrote. */
  empty(): Promise<void>;
}

/** Returns a plain directory on the machine's disk. */
export async function plainDisk(): Promise<Disk> {
  const dir = await mkdtemp(join(tmpdir(), "ow-chaos-disk-"));
  await chmod(dir, 0o755);
  return {
    dir,
    fill: undefined,
    empty: async () => {},
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Returns whether this machine lets the tests mount a disk, which needs root. */
export async function isMountable(): Promise<boolean> {
  await using disk = await mountDisk(1);
  return disk.fill !== undefined;
}

/** Mounts a disk in memory, which needs root; returns a plain directory where that fails. */
export async function mountDisk(sizeMb = SIZE_MB): Promise<Disk> {
  const dir = await mkdtemp(join(tmpdir(), "ow-chaos-disk-"));
  await chmod(dir, 0o755);
  const isMounted = await run("mount", ["-t", "tmpfs", "-o", `size=${sizeMb}m,mode=755`, "tmpfs", dir]).then(
    () => true,
    () => false,
  );
  const filler = join(dir, "filler");
  return {
    dir,
    fill: isMounted
      ? async () => {
          // Other processes write too, so it ends when no space is left, not at a fixed length.
          await run("sh", ["-c", 'cat /dev/zero > "$1"', "sh", filler]).catch(() => {});
        }
      : undefined,
    async empty() {
      await rm(filler, { force: true });
    },
    async [Symbol.asyncDispose]() {
      if (isMounted) await unmount(dir);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Kills the processes that use the disk, all of them the run's own, and unmounts it. */
async function unmount(dir: string): Promise<void> {
  const pids = usersOf(dir);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await waitUntil(() => !pids.some(isAlive), DEATH_TIMEOUT_MS);
  // A process that opened a file since then keeps it; the path is gone for all others.
  await run("umount", [dir]).catch(() => run("umount", ["--lazy", dir]));
}

/** Finds other processes with a working directory, a program or an open file in a directory. */
function usersOf(dir: string): number[] {
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && entry !== String(process.pid));
  const uses = (link: string) => readlinkSync(link).startsWith(`${dir}/`) || readlinkSync(link) === dir;
  return pids.map(Number).filter((pid) => {
    try {
      const files = readdirSync(`/proc/${pid}/fd`).map((file) => `/proc/${pid}/fd/${file}`);
      return [`/proc/${pid}/cwd`, `/proc/${pid}/exe`, ...files].some((link) => {
        try {
          return uses(link);
        } catch {
          // The file was closed, or this is a kernel thread, which has no program.
          return false;
        }
      });
    } catch {
      // The process has just ended.
      return false;
    }
  });
}
