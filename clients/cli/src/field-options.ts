import { type Command, Option } from "commander";

/** A field of a message that an option sets. */
export interface Field<Init> {
  /** Such as `--max-lease <duration>`. */
  readonly flags: string;
  readonly description: string;
  /** The field's name in the proto, such as `max_lease`. */
  readonly path: string;
  /** The field, set; nothing if the text says that it is to be unset. @throws InvalidArgumentError. */
  readonly parse: (text: string) => Init;
}

/** What the options say: the fields that are set, and the names of all that were mentioned. */
export interface FieldsSet<Init> {
  readonly init: Init;
  readonly paths: readonly string[];
}

export function addFieldOptions<Init>(command: Command, fields: readonly Field<Init>[]): Command {
  for (const { flags, description, parse } of fields) {
    command.addOption(new Option(flags, description).argParser(parse));
  }
  return command;
}

export function readFieldOptions<Init extends object>(
  fields: readonly Field<Init>[],
  options: Readonly<Record<string, unknown>>,
): FieldsSet<Init> {
  const given = fields.flatMap(({ flags, path }) => {
    const init = options[new Option(flags).attributeName()] as Init | undefined;
    return init === undefined ? [] : [{ init, path }];
  });
  return {
    init: Object.assign({}, ...given.map(({ init }) => init)),
    paths: given.map(({ path }) => path),
  };
}

/** An option's parser where one word unsets the field. */
export function unsetBy<Init extends object>(word: string, parse: (text: string) => Init) {
  return (text: string): Init | Record<never, never> => (text === word ? {} : parse(text));
}
