import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { CommandError } from "./host.ts";

/**
 * Reads a command's options.
 *
 * @throws CommandError on an option that the command doesn't have, and on anything that is no option.
 */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new CommandError(error instanceof Error ? error.message : String(error));
  }
}
