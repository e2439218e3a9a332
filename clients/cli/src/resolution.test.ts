import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readResolution } from "./resolution.ts";

test("a result in a file is stored byte for byte; one that is too large, not UTF-8 or missing is refused", async () => {
  const dir = await mkdtemp(join(tmpdir(), "ow-resolution-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "result.json");
  const resolve = () => readResolution({ complete: `@${file}` });
  await expect(resolve()).rejects.toThrow(`${file} can't be read: ENOENT.`);
  const largest = Buffer.from(`"${"x".repeat(1024 * 1024 - 2)}"`);
  await writeFile(file, largest);
  const resolution = await resolve();
  const payload = resolution.case === "complete" ? resolution.result.payload : undefined;
  expect(largest.equals(payload ?? Buffer.alloc(0))).toBe(true);
  await writeFile(file, `${largest} `);
  await expect(resolve()).rejects.toThrow(`${file} has more than 1048576 bytes.`);
  await writeFile(file, Buffer.from([0x22, 0xff, 0x22]));
  await expect(resolve()).rejects.toThrow(`${file} is not UTF-8.`);
});
