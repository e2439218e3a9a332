import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Enough for the data of a long run with a standby, and little enough to be filled at once. */
const SIZE_MB = 1500;

/** A directory for a run's data, on a disk of its own where one can be mounted. */
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
      if (isMounted) await run("umount", [dir]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}
