import { Command } from "commander";
import { addFieldOptions, type Field } from "../field-options.ts";
import { parseLimit } from "../numbers.ts";
import { POLICY_FIELDS, type PolicyInit } from "../policy-fields.ts";

/** How many items lists show unless told otherwise. */
export const DEFAULT_LIMIT = 100;

/** The option of every list. */
export interface LimitOption {
  readonly limit: number;
}

/** A command with what its help says: what it does, and how it is called. */
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

/** A command that only holds others. */
export function group(name: string, description: string, commands: readonly Command[]): Command {
  const made = new Command(name).description(description);
  for (const one of commands) made.addCommand(one);
  return made;
}

export function withLimit(made: Command, limit = DEFAULT_LIMIT): Command {
  return made.option("--limit <count>", "show at most so many", parseLimit, limit);
}

/** The options of a change that asks. */
export function withYes(made: Command): Command {
  return made.option("--yes", "do not ask");
}

/** The options of a policy's change. */
export function withPolicyChange(
  made: Command,
  fields: readonly Field<PolicyInit>[] = POLICY_FIELDS,
): Command {
  return withYes(addFieldOptions(made, fields))
    .option("--apply-to-existing", "change the records that are there, too, in the background")
    .option("--dry-run", "show what it would do, and change nothing");
}

/** Gathers an option that may be given several times. */
export function several(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
