import { Command } from "commander";
import { parseLimit } from "../arguments.ts";

/** The default of `--limit`. */
export const DEFAULT_LIMIT = 100;

/** The option of every list. */
export interface LimitOption {
  readonly limit: number;
}

/** Returns a command with the description and examples of its help. */
export function command(
  nameAndArguments: string,
  description: string,
  ...examples: readonly string[]
): Command {
  const lines = examples.map((example) => `  onceward ${example}`);
  const [name, ...args] = nameAndArguments.split(" ");
  const made = new Command(name);
  for (const arg of args) made.argument(arg);
  return made
    .description(description)
    .addHelpText("after", `\n${lines.length === 1 ? "Example" : "Examples"}:\n${lines.join("\n")}`);
}

/** Returns a command that consists of subcommands. @param description of a group of the program: its summary there. */
export function group(name: string, commands: readonly Command[], description = ""): Command {
  const made = new Command(name).description(description);
  for (const one of commands) made.addCommand(one);
  return made;
}

/** Adds the options of a command that shows a table. */
export function withTable(made: Command): Command {
  return made
    .option("--wide", "show every column, in lines of any length")
    .option("--columns <names>", "show only these columns, such as key,state", (names) => names.split(","));
}

/** Adds the options of a list. */
export function withLimit(made: Command, limit = DEFAULT_LIMIT): Command {
  return withTable(made).option(
    "-l, --limit <count>",
    "the largest number of items to show",
    parseLimit,
    limit,
  );
}

/** Adds the option of a command of operators that asks several installations. */
export function withAllCells(made: Command): Command {
  return made.option(
    "--all-cells",
    "ask every cell: each profile with a key that was stored with --role operator",
  );
}

/** Adds the option of a change that asks for confirmation. */
export function withYes(made: Command): Command {
  return made.option("-y, --yes", "do not ask for confirmation");
}

/** Collects the values of an option that may be given several times. */
export function several(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
