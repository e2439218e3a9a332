import { Command } from "commander";
import { refuseExcess } from "./arguments.ts";
import { adviceCommand } from "./commands/advice.ts";
import { auditCommands } from "./commands/audit.ts";
import { benchCommand } from "./commands/bench.ts";
import { completionCommand, completionWordsCommand } from "./commands/completion.ts";
import { doctorCommand } from "./commands/connection-doctor.ts";
import { httpProxyCommand } from "./commands/http-proxy.ts";
import { jobCommands } from "./commands/jobs.ts";
import { keyCommands } from "./commands/keys.ts";
import { loginCommand } from "./commands/login.ts";
import { lookupCommand } from "./commands/lookup.ts";
import { namespaceCommands } from "./commands/namespaces.ts";
import { operatorCommands } from "./commands/operator.ts";
import { probeCommand } from "./commands/probe.ts";
import { profileCommands } from "./commands/profile.ts";
import { recordCommands } from "./commands/records.ts";
import { retentionCommands } from "./commands/retention.ts";
import { tenantCommands } from "./commands/tenant.ts";
import { usageCommands } from "./commands/usage.ts";
import { watchCommand } from "./commands/watch.ts";
import { whoAmICommand } from "./commands/whoami.ts";
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
    await createProgram(host).parseAsync(host.args, { from: "user" });
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

/** Returns the program with all its commands. */
export function createProgram(host: Host): Command {
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
    .allowExcessArguments()
    .hook("preAction", (_, made) => refuseExcess(made))
    .exitOverride();
  for (const command of [
    loginCommand(host),
    profileCommands(host),
    tenantCommands(host),
    namespaceCommands(host),
    retentionCommands(host),
    recordCommands(host),
    jobCommands(host),
    keyCommands(host),
    auditCommands(host),
    usageCommands(host),
    adviceCommand(host),
    watchCommand(host),
    benchCommand(host),
    lookupCommand(host),
    whoAmICommand(host),
    doctorCommand(host),
    httpProxyCommand(host),
    probeCommand(host),
    operatorCommands(host),
    completionCommand(host),
  ]) {
    program.addCommand(command);
  }
  program.addCommand(
    completionWordsCommand(host, () => program),
    { hidden: true },
  );
  addWeb(program, host);
  inheritSettings(program);
  return program;
}

/** Copies output and exit settings to all subcommands, which do not inherit them if they are created separately. */
function inheritSettings(parent: Command): void {
  for (const child of parent.commands) {
    child.copyInheritedSettings(parent);
    inheritSettings(child);
  }
}
