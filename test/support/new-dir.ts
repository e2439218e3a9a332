import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Creates an empty directory, which is removed with its contents when the test ends. */
export async function newDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-test-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
