import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, readFile, statfs } from "node:fs/promises";
import { expect, test } from "vitest";
import { isAlive } from "../../../server/dev/embedded/pid-file.ts";
import { isMountable, mountDisk } from "../../support/processes/small-disk.ts";

const SIZE_MB = 16;
const canMount = await isMountable();

test("a disposed disk is gone", async () => {
  const disk = await mountDisk(SIZE_MB);
  await disk[Symbol.asyncDispose]();
  await expect(access(disk.dir)).rejects.toThrow("ENOENT");
});

test.runIf(canMount)("a filled disk has no space until it is emptied", async () => {
  await using disk = await mountDisk(SIZE_MB);
  await disk.fill?.();
  expect((await statfs(disk.dir)).bavail).toBe(0);
  await disk.empty();
  expect((await statfs(disk.dir)).bavail).toBeGreaterThan(0);
});

test.runIf(canMount)("disposing a disk unmounts it and kills the processes that use it", async () => {
  const disk = await mountDisk(SIZE_MB);
  const working = spawn("sleep", ["600"], { cwd: disk.dir });
  const writing = spawn(
    "sh",
    ["-c", 'echo x > "$1"; sleep 600 3< "$1" & echo $!; wait', "sh", `${disk.dir}/file`],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const [line] = await once(writing.stdout, "data");
  const ended = (child: ChildProcess) =>
    child.exitCode ?? child.signalCode ?? once(child, "exit").then(([code, signal]) => code ?? signal);
  await disk[Symbol.asyncDispose]();
  expect(await readFile("/proc/mounts", "utf8")).not.toContain(disk.dir);
  expect(await ended(working)).toBe("SIGKILL");
  await ended(writing);
  expect(isAlive(Number(String(line)))).toBe(false);
});
