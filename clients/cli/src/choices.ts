import { InvalidArgumentError, Option } from "commander";

/** The values of an option or argument by their names: the contract's, in lower case and without their prefix. */
export type Choices<Value> = Readonly<Record<string, Value>>;

/** The prefixes that the contract's enumerated values have in JSON, such as STATE_IN_PROGRESS. */
const CONTRACT_PREFIX = /^(?:state|role|outcome|kind)_/;

/** Returns the choices of an enum of the contract, without its value for unset. */
export function choicesOf<Names extends Readonly<Record<string, string | number>>>(
  names: Names,
): Choices<Extract<Names[keyof Names], number>> {
  const values = Object.entries(names).filter(([, value]) => typeof value === "number" && value !== 0);
  return Object.fromEntries(values.map(([name, value]) => [name.toLowerCase(), value])) as Choices<
    Extract<Names[keyof Names], number>
  >;
}

/**
 * Returns a parser of a choice. It accepts every spelling that the program or the service prints: `in_progress`,
 * `in-progress`, `IN_PROGRESS`, `STATE_IN_PROGRESS`.
 *
 * @param aliases other names of the values, which help does not show.
 * @returns a function that throws InvalidArgumentError.
 */
export function choiceParser<Value>(choices: Choices<Value>, aliases: Choices<NoInfer<Value>> = {}) {
  const values = new Map(Object.entries({ ...aliases, ...choices }));
  return (text: string): Value => {
    const name = text.toLowerCase().replace(/[- ]/g, "_");
    const value = values.get(name) ?? values.get(name.replace(CONTRACT_PREFIX, ""));
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Allowed choices are ${Object.keys(choices).join(", ")}.`);
  };
}

/** Returns an option whose value is one of the choices, in any case. Help and completion show the choices. */
export function choiceOption<Value>(
  flags: string,
  description: string,
  choices: Choices<Value>,
  aliases: Choices<NoInfer<Value>> = {},
): Option {
  return new Option(flags, description)
    .choices(Object.keys(choices))
    .argParser(choiceParser(choices, aliases));
}
