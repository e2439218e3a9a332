import { Command } from "commander";
import { refuseExcess } from "./arguments.ts";
import { COMMANDS } from "./command-table.ts";
import { command } from "./commands/group.ts";
import { WORDS_COMMAND } from "./completion.ts";
import { describeFailure, EXIT, type ExitCode, exitCodeOf, failureJson } from "./failure.ts";
import { type Host, printing } from "./host.ts";
import { VERSION } from "./version.ts";
import { addWeb } from "./web.ts";

const AFTER_HELP = `
Durations are 90s, 15m, 24h, 7d; times are 2026-01-31T09:00:00Z, or a duration back from now; bytes are 65536, 64KiB.
States and other choices are written as the contract's, in any case: in_progress, IN_PROGRESS, STATE_IN_PROGRESS.

Environment:
  ONCEWARD_ADDRESS, ONCEWARD_API_KEY   instead of the profile in use
  ONCEWARD_CONSOLE_ORIGIN              the console's address for --web; default: the one that the service names

Exit codes:
  0  done
  1  refused by the service, or not confirmed; nothing was changed
  2  wrong usage, or no terminal to ask on; nothing was changed
  3  the service was unreachable, or did not answer; a change may have been made
  4  not found
  5  doctor: warnings; probe: a bound ended it early
  6  doctor: errors; probe: a check failed

Help on a command, with examples: onceward COMMAND --help`;

/** Runs the command that the arguments name. Resolves with the exit code; never rejects. */
export async function runProgram(terminal: Host): Promise<ExitCode> {
  const host = printing(terminal);
  try {
    const program = await createProgram(host, host.args);
    await program.parseAsync(host.args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    const line = isJson(host) ? failureJson(error) : describeFailure(error);
    if (line !== undefined) host.warn(`${line}\n`);
    return exitCodeOf(error);
  }
}

/** Returns whether errors are printed as JSON. Known before the arguments are parsed, which may fail. */
function isJson({ args }: Host): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).some((arg) => arg === "--json" || arg === "-j");
}

/**
 * Returns the program.
 *
 * @param words only the commands whose names are among these have their options, subcommands and actions.
 */
export async function createProgram(host: Host, words: readonly string[]): Promise<Command> {
  const program = new Command("onceward")
    .description("Tunes and operates Onceward, idempotency as a service.")
    .version(VERSION, "--version", "print the version")
    .option("-p, --profile <name>", "use this profile")
    .option("-a, --address <url>", "the service's address, such as http://localhost:50051")
    .option("--api-key-stdin", "read the API key from standard input")
    .option("-j, --json", "print results and errors as JSON, for programs")
    .addHelpText("after", AFTER_HELP)
    .configureOutput({
      writeOut: host.write,
      writeErr: isJson(host) ? () => {} : host.warn,
      outputError: (text, write) => write(text.replace(/^error: /, "onceward: ")),
    })
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError("onceward --help lists the commands, onceward COMMAND --help what one takes.")
    .allowExcessArguments()
    .hook("preAction", (_, made) => refuseExcess(made))
    .exitOverride();
  const typed = COMMANDS.filter(({ name }) => words.includes(name));
  for (const entry of COMMANDS) {
    const made = typed.includes(entry) ? (await entry.load())(host) : new Command(entry.name);
    program.addCommand(made.description(made.description() || entry.summary).summary(entry.summary));
  }
  program.addCommand(versionCommand(host));
  if (words.includes(WORDS_COMMAND)) {
    const { completionWordsCommand } = await import("./commands/completion.ts");
    program.addCommand(completionWordsCommand(host, program), { hidden: true });
  }
  addWeb(program, host);
  inheritSettings(program);
  return program;
}

function versionCommand(host: Host): Command {
  return command("version", "print the version", "version").action(() => host.write(`${VERSION}\n`));
}

/** Copies output and exit settings to all subcommands, which do not inherit them if they are created separately. */
function inheritSettings(parent: Command): void {
  for (const child of parent.commands) {
    child.copyInheritedSettings(parent);
    inheritSettings(child);
  }
}
