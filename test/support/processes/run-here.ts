import { COMMANDS } from "../../../server/src/commands/commands.ts";
import type { Host } from "../../../server/src/commands/host.ts";
import { printable } from "../../../server/src/commands/printable.ts";
import { runOn } from "../../../server/src/commands/process.ts";
import type { Ended } from "./command.ts";

/**
 * Runs a command of `onceward-server` to its end in this process, which has loaded the server already: a process of its own takes
 * half a second of processor time to load it. For commands that need no input, no signal and no log.
 *
 * @throws Error if the first argument is not a command.
 */
export async function runHere(
  [name, ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const command = COMMANDS.find((each) => each.name === name);
  if (command === undefined) throw new Error(`${name} is not a command`);
  const ended = { exit: 0, stdout: "", stderr: "" };
  const host: Partial<Host> = {
    args,
    env,
    print: (line) => {
      ended.stdout += `${printable(line)}\n`;
    },
    report: (line) => {
      ended.stderr += `${printable(line)}\n`;
    },
    setExitCode: (exitCode) => {
      ended.exit = exitCode;
    },
  };
  await runOn(host as Host, command.run);
  return ended;
}
