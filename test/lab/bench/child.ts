import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";

/** Starts a program of Node, which ends with the stack. */
export function startChild(
  cleanUp: AsyncDisposableStack,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: tmpdir(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  cleanUp.defer(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return child;
}

/** Resolves with the first line that a child writes. */
export async function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return (await once(createInterface(stream), "line"))[0] as string;
}
