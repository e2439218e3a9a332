import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { printable } from "../src/commands/printable.ts";

/** What a tool's command line may be. */
interface CommandLine<T extends ParseArgsOptionsConfig> {
  readonly options: T;
  /** Whether it takes names besides options. */
  readonly allowPositionals?: boolean;
  readonly args?: readonly string[];
}

/**
 * Reads the command line of a tool, before it starts anything. `--help` prints `usage` and ends the process; for a wrong option a
 * line says what is wrong with it, above `usage`, and the process ends with 2.
 */
export function readCommandLine<const T extends ParseArgsOptionsConfig>(
  usage: string,
  { options, allowPositionals = false, args = process.argv.slice(2) }: CommandLine<T>,
) {
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (error) {
    failUsage(usage, (error as Error).message);
  }
}

/** Says what is wrong with a command line, above its usage, and ends the process with 2. */
export function failUsage(usage: string, message: string): never {
  process.stderr.write(`${printable(message)}\n\n${usage}\n`);
  process.exit(2);
}

/** Returns the whole number of an option. Ends the process as `failUsage` does if it isn't one from `min` to `max`. */
export function wholeNumber(usage: string, option: string, text: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  failUsage(usage, `--${option} takes a whole number from ${min} to ${max}, not ${text}`);
}
