import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { CHILD_ENVIRONMENT } from "../processes/child-environment.ts";

const CLI = fileURLToPath(new URL("../../../clients/cli/src/main.ts", import.meta.url));

/** Where a person types commands. */
export interface Place {
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Types commands into a shell in which `onceward` is the command line; returns what they print, and the last one's exit code. */
export function typeCommands(
  commands: string,
  { dir, env }: Place,
): Promise<{ readonly exit: number; readonly stdout: string }> {
  const onceward = `onceward() { '${process.execPath}' --conditions=@onceward/source '${CLI}' "$@"; }`;
  return new Promise((resolve) => {
    const options = { cwd: dir, env: { ...CHILD_ENVIRONMENT, ...env } };
    const shell = execFile("bash", ["-c", `${onceward}\n${commands}`], options, (_, stdout) => {
      resolve({ exit: shell.exitCode ?? -1, stdout });
    });
  });
}
