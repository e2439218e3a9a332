import { COMMANDS as PROGRAM_COMMANDS } from "../../../clients/cli/src/command-table.ts";
import type { Host } from "../../../clients/cli/src/host.ts";
import { createProgram } from "../../../clients/cli/src/program.ts";
import { COMMANDS } from "../../../server/src/commands/commands.ts";
import type { Words } from "./shell.ts";

const quiet = () => {};
const HOST = { args: [], env: {}, homeDir: "/nowhere", write: quiet, warn: quiet } as unknown as Host;
/** What may replace a word for any number, job, address or command. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  N: "1",
  JOB: "1",
  URL: "https://onceward.example",
  COMMAND: "doctor",
};
/** A sentence may name a group of commands, or a command without its arguments; asking for help is not an error. */
const MENTIONS = ["commander.missingArgument", "commander.help", "commander.missingMandatoryOptionValue"];
const HELP = "commander.helpDisplayed";

/** Returns what is wrong with a command line of `onceward`, by the program's own parser; runs nothing. */
export async function oncewardProblem(words: Words, isInline: boolean): Promise<string | undefined> {
  const program = await createProgram(
    HOST,
    PROGRAM_COMMANDS.map(({ name }) => name),
  );
  makeIdle(program);
  const args = words.map((word) => PLACEHOLDERS[word] ?? word);
  try {
    await program.parseAsync(args, { from: "user" });
    return undefined;
  } catch (error) {
    const { code = "", message } = error as Error & { readonly code?: string };
    return code === HELP || (isInline && MENTIONS.includes(code)) ? undefined : message;
  }
}

function makeIdle(command: Awaited<ReturnType<typeof createProgram>>): void {
  if (command.commands.length === 0) command.action(quiet);
  for (const child of command.commands) makeIdle(child);
}

/** Returns what is wrong with a command line of `onceward-server`. */
export function serverProblem([name = "", ...args]: Words): string | undefined {
  const command = COMMANDS.find((each) => each.name === name);
  if (command === undefined) return `onceward-server has no command ${name}`;
  const known: readonly string[] = command.synopsis?.match(/--[\w-]+/g) ?? [];
  const unknown = args.find((word) => word.startsWith("--") && !known.includes(word));
  return unknown && `onceward-server ${name} has no option ${unknown}`;
}
