import type { Argument, Command, Option } from "commander";
import type { GlobalOptions } from "./credentials.ts";

/** The names that only the service or the stored profiles know. Each resolves with none if it can't find out. */
export interface NameSources {
  /** @param globals the global options with values before the cursor. */
  namespaces(globals: GlobalOptions): Promise<readonly string[]>;
  profiles(): Promise<readonly string[]>;
}

/** The place of the cursor in a line. */
interface Place {
  readonly command: Command;
  /** The option whose value is being typed. */
  readonly option: Option | undefined;
  /** The argument that is being typed. */
  readonly argument: Argument | undefined;
  /** The global options with values before the cursor. */
  readonly globals: GlobalOptions;
}

/**
 * Returns the valid words at the cursor.
 *
 * @param words the words after the program's name, up to and with the one being typed, which may be empty.
 */
export async function completions(
  program: Command,
  words: readonly string[],
  sources: NameSources,
): Promise<readonly string[]> {
  // bash makes three words of --state=completed.
  const typed = words.filter((word) => word !== "=");
  const before = typed.slice(0, -1);
  const last = typed.at(-1) ?? "";
  // zsh and fish leave --state=comp one word.
  const [, flag, value] = /^(--[a-z-]+)=(.*)$/.exec(last) ?? [];
  if (flag === undefined || value === undefined) {
    const place = findPlace(program, before);
    // Options are many: they are offered once a dash is typed, or if nothing else is known.
    const isFlag = last.startsWith("-") && place.option === undefined;
    const values = isFlag ? [] : startingWith(last, await candidates(place, sources));
    return values.length > 0 || place.option ? values : startingWith(last, flagsOf(place.command));
  }
  const values = await candidates(findPlace(program, [...before, flag]), sources);
  return startingWith(value, values).map((word) => `${flag}=${word}`);
}

function findPlace(program: Command, before: readonly string[]): Place {
  let command = program;
  let option: Option | undefined;
  let argumentIndex = 0;
  const globals: Record<string, string> = {};
  for (const word of before) {
    if (option !== undefined) {
      if (program.options.includes(option)) globals[option.attributeName()] = word;
      option = undefined;
    } else if (word.startsWith("-")) {
      const known = [...command.options, ...program.options].find(
        ({ long, short }) => long === word || short === word,
      );
      option = known?.required || known?.optional ? known : undefined;
    } else {
      const child = command.commands.find((one) => one.name() === word);
      if (child === undefined) argumentIndex++;
      else command = child;
    }
  }
  return { command, option, argument: command.registeredArguments[argumentIndex], globals };
}

async function candidates(place: Place, sources: NameSources): Promise<readonly string[]> {
  const { command, option, argument, globals } = place;
  if (option !== undefined) {
    return option.argChoices ?? (await namesFor(option.long?.slice(2), globals, sources));
  }
  const children = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== "help");
  const values = argument?.argChoices ?? (await namesFor(argument?.name(), globals, sources));
  return [...children.map((child) => child.name()), ...values];
}

function flagsOf(command: Command): readonly string[] {
  const own = command.options.flatMap(({ long }) => long ?? []);
  return command.parent === null ? [...own, "--help"] : [...own, ...flagsOf(command.parent)];
}

async function namesFor(
  name: string | undefined,
  globals: GlobalOptions,
  sources: NameSources,
): Promise<readonly string[]> {
  if (name === "namespace") return sources.namespaces(globals);
  return name === "profile" ? sources.profiles() : [];
}

/** The name of the command that completion scripts run; people have no use for it. */
export const WORDS_COMMAND = "completion-words";

function startingWith(prefix: string, words: readonly string[]): readonly string[] {
  return words.filter((word) => word.startsWith(prefix));
}
