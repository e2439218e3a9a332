import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

/**
 * Starts the demo with its own temporary directory, and sends `signal` when it prints a line that matches.
 */
async function interruptAt(pattern: RegExp, signal: NodeJS.Signals) {
  const dir = await mkdtemp(join(tmpdir(), "onceward-interruption-"));
  // As root, Postgres runs as another user, which must be able to enter.
  await chmod(dir, 0o755);
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const child = spawn(process.execPath, ["--conditions=@onceward/source", MAIN, "--seed", "7"], {
    env: { ...process.env, TMPDIR: dir },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    if (pattern.test(line)) child.kill(signal);
  }
  const [code] = await exit;
  return { code, left: await readdir(dir) };
}

test.each([
  ["while it starts", /^Starting/, "SIGINT"],
  ["while workers die", /^Unguarded: \d+ of/, "SIGTERM"],
] as const)("a demo that is interrupted %s leaves no files behind", async (_, pattern, signal) => {
  expect(await interruptAt(pattern, signal)).toEqual({ code: 130, left: [] });
});
