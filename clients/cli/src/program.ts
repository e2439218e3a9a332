import { Command } from "commander";
import { auditCommands } from "./commands/audit.ts";
import { completionCommand } from "./commands/completion.ts";
import { keyCommands } from "./commands/keys.ts";
import { lookupCommand } from "./commands/lookup.ts";
import { namespaceCommands } from "./commands/namespaces.ts";
import { operatorCommands } from "./commands/operator.ts";
import { profileCommands } from "./commands/profile.ts";
import { recordCommands } from "./commands/records.ts";
import { retentionCommands } from "./commands/retention.ts";
import { tenantCommands } from "./commands/tenant.ts";
import { usageCommands } from "./commands/usage.ts";
import { describeFailure, EXIT, type ExitCode, exitCodeOf } from "./failure.ts";
import type { Host } from "./host.ts";
import { VERSION } from "./version.ts";

const AFTER_HELP = `
Durations are 90s, 15m, 24h, 7d; times are 2026-01-31T09:00:00Z, or a duration back from now.

Environment:
  ONCEWARD_ADDRESS, ONCEWARD_API_KEY   instead of the profile in use

Exit codes:
  0  done
  1  refused, by the service or by who was asked
  2  wrong usage, or nobody to ask; nothing was changed
  3  the service could not be reached, or did not answer; a change may have been made
  4  there is no such thing

Help on a command, with examples: onceward COMMAND --help`;

/** Runs the command that the arguments name, and answers the exit code. Never rejects. */
export async function runProgram(host: Host): Promise<ExitCode> {
  try {
    await createProgram(host).parseAsync(host.args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    const line = describeFailure(error);
    if (line !== undefined) host.warn(`${line}\n`);
    return exitCodeOf(error);
  }
}

/** Every command there is. */
export function createProgram(host: Host): Command {
  const program = new Command("onceward")
    .description("Tunes and operates Onceward, idempotency as a service.")
    .version(VERSION, "--version", "print the version")
    .option("--profile <name>", "use this profile")
    .option("--address <url>", "call the service there, such as http://localhost:50051")
    .option("--api-key-stdin", "read the API key from standard input")
    .option("--json", "print JSON, for programs")
    .addHelpText("after", AFTER_HELP)
    .configureOutput({
      writeOut: host.write,
      writeErr: host.warn,
      outputError: (text, write) => write(text.replace(/^error: /, "onceward: ")),
    })
    .exitOverride();
  for (const command of [
    profileCommands(host),
    tenantCommands(host),
    namespaceCommands(host),
    retentionCommands(host),
    recordCommands(host),
    keyCommands(host),
    auditCommands(host),
    usageCommands(host),
    lookupCommand(host),
    operatorCommands(host),
    completionCommand(host, () => program),
  ]) {
    program.addCommand(command);
    inheritSettings(command, program);
  }
  return program;
}

/** A command that is made by itself has its parent's output and exit only if it is told. */
function inheritSettings(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inheritSettings(child, command);
}
