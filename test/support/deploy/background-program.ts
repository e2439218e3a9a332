import { spawn } from "node:child_process";
import { once } from "node:events";
import { programPath } from "./programs.ts";
import type { ProgramName } from "./programs-setup.ts";

/** A program that runs until it is stopped. */
export interface BackgroundProgram {
  /** Standard output and standard error so far. */
  output(): string;
  /** Whether the program still runs. */
  isRunning(): boolean;
  signal(name: NodeJS.Signals): void;
  /** Kills the program. */
  stop(): Promise<void>;
}

/** Runs the program until standard input ends, as it does when the tests are killed. */
const WATCHED =
  '"$@" & child=$!; echo "pid $child"; (read -r _; kill -9 $child 2>/dev/null) <&3 & wait $child';

/** Starts a program, which ends with the tests. */
export async function startProgram(
  name: ProgramName,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<BackgroundProgram> {
  const child = spawn("sh", ["-c", `exec 3<&0; ${WATCHED}`, "sh", programPath(name), ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  }
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  const pid = Number(/^pid (\d+)$/m.exec(printed)?.[1]);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return {
    output: () => printed,
    isRunning,
    signal: (signal) => process.kill(pid, signal),
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
