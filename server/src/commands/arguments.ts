import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { CommandError } from "./host.ts";

/**
 * Reads a command's options.
 *
 * @throws CommandError for an unknown option and for a positional argument.
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
