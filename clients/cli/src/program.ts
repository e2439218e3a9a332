import { createRequire } from "node:module";
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

const AFTER_HELP = `
Durations are 90s, 15m, 24h, 7d; times are 2026-01-31T09:00:00Z, or a duration back from now.

Environment:
  ONCEWARD_ADDRESS, ONCEWARD_API_KEY   instead of the profile in use

Exit codes:
  0  done
  1  refused by the service, or not confirmed; nothing was changed
  2  wrong usage, or no terminal to ask on; nothing was changed
  3  the service was unreachable, or did not answer; a change may have been made
  4  not found

Help on a command, with examples: onceward COMMAND --help`;

/** Runs the command that the arguments name. Resolves with the exit code; never rejects. */
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

/** Returns the program with all its commands. */
export function createProgram(host: Host): Command {
  const program = new Command("onceward")
    .description("Tunes and operates Onceward, idempotency as a service.")
    .version(VERSION, "--version", "print the version")
    .option("--profile <name>", "use this profile")
    .option("--address <url>", "the service's address, such as http://localhost:50051")
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

/** Copies the parent's output and exit settings, which a separately created command does not inherit. */
function inheritSettings(command: Command, parent: Command): void {
  command.copyInheritedSettings(parent);
  for (const child of command.commands) inheritSettings(child, command);
}

const { version }: { readonly version: string } = createRequire(import.meta.url)("../package.json");

/** This package's version. */
export const VERSION = version;
