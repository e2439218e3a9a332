import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, inject } from "vitest";
import type { ProgramName } from "./programs-setup.ts";

const run = promisify(execFile);
/** Only a program that hangs reaches it. */
const PROGRAM_TIMEOUT_MS = 200_000;

/** Runs tests that need these programs; skips them if one is not installed, which the setup prints. */
export function describeWithPrograms(names: readonly ProgramName[], title: string, tests: () => void): void {
  const programs = inject("programs");
  describe.runIf(names.every((name) => programs[name] !== undefined))(title, tests);
}

/** Returns the path of an installed program. @throws Error if it is not installed. */
export function programPath(name: ProgramName): string {
  const path = inject("programs")[name];
  if (path === undefined) throw new Error(`${name} is not installed: use describeWithPrograms`);
  return path;
}

/** The exit code and the output of a program that ended. */
export interface ProgramResult {
  readonly exit: number;
  /** Standard output, followed by standard error. */
  readonly output: string;
}

/** Runs a program to its end. A failure is a result, not an error. */
export function runProgram(name: ProgramName, ...args: string[]): Promise<ProgramResult> {
  return runProgramWith({}, name, ...args);
}

/** The same with variables in addition to those of this process. */
export async function runProgramWith(
  variables: Readonly<Record<string, string>>,
  name: ProgramName,
  ...args: string[]
): Promise<ProgramResult> {
  const options = { timeout: PROGRAM_TIMEOUT_MS, env: { ...process.env, ...variables } };
  try {
    const { stdout, stderr } = await run(programPath(name), args, options);
    return { exit: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (typeof code !== "number") throw error;
    return { exit: code, output: `${stdout}${stderr}` };
  }
}
