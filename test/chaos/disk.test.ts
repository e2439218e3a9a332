import { access, statfs } from "node:fs/promises";
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
