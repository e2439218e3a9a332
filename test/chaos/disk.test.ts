import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, readFile, statfs } from "node:fs/promises";
import { expect, test } from "vitest";
import { mountDisk } from "./disk.ts";

test("a disk that can be filled is full until it is emptied, and gone in the end", async () => {
  const disk = await mountDisk();
  if (disk.fill !== undefined) {
    await disk.fill();
    expect((await statfs(disk.dir)).bavail).toBe(0);
    await disk.empty();
    expect((await statfs(disk.dir)).bavail).toBeGreaterThan(0);
  }
  await disk[Symbol.asyncDispose]();
  await expect(access(disk.dir)).rejects.toThrow("ENOENT");
});

test("a disk that processes still use is unmounted, and they are ended", async () => {
  const disk = await mountDisk();
  if (disk.fill === undefined) return await disk[Symbol.asyncDispose]();
  const working = spawn("sleep", ["600"], { cwd: disk.dir });
  const writing = spawn(
    "sh",
    ["-c", 'echo x > "$1"; sleep 600 3< "$1" & echo $!; wait', "sh", `${disk.dir}/file`],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  await once(writing.stdout, "data");
  const ended = (child: ChildProcess) =>
    child.exitCode ?? child.signalCode ?? once(child, "exit").then(([code, signal]) => code ?? signal);
  await disk[Symbol.asyncDispose]();
  expect(await readFile("/proc/mounts", "utf8")).not.toContain(disk.dir);
  expect(await ended(working)).toBe("SIGKILL");
  await ended(writing);
});
