import { execFile } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { isAlive } from "../../server/dev/embedded/pid-file.ts";
import { waitUntil } from "../../server/dev/embedded/wait.ts";

const run = promisify(execFile);
/** Enough for the data of a long run with a standby, and little enough to be filled at once. */
const SIZE_MB = 1500;
const DEATH_TIMEOUT_MS = 10_000;

/** A directory for a run's data, on a disk of its own where one can be mounted; disposing ends what still uses it. */
export interface Disk extends AsyncDisposable {
  readonly dir: string;
  /** Undefined: it can't be filled without harming others. */
  readonly fill: (() => Promise<void>) | undefined;
  /** Removes what `fill` wrote. */
  empty(): Promise<void>;
}

/** Mounts a disk in memory, which takes root; without, answers a directory. */
export async function mountDisk(): Promise<Disk> {
  const dir = await mkdtemp(join(tmpdir(), "ow-chaos-disk-"));
  await chmod(dir, 0o755);
  const isMounted = await run("mount", ["-t", "tmpfs", "-o", `size=${SIZE_MB}m,mode=755`, "tmpfs", dir]).then(
    () => true,
    () => false,
  );
  const filler = join(dir, "filler");
  return {
    dir,
    fill: isMounted
      ? async () => {
          // Others write meanwhile, and so it ends where there is no space, and not at some length.
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

/** Ends the processes that use the disk, which nobody but the run knows, and unmounts it. */
async function unmount(dir: string): Promise<void> {
  const pids = usersOf(dir);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await waitUntil(() => !pids.some(isAlive), DEATH_TIMEOUT_MS);
  // One that came since keeps its own files; nobody else finds the disk any more.
  await run("umount", [dir]).catch(() => run("umount", ["--lazy", dir]));
}

/** Other processes with a working directory, a program or an open file there. */
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
          // Closed meanwhile, or a kernel's thread, which has no program.
          return false;
        }
      });
    } catch {
      // It has just ended.
      return false;
    }
  });
}
