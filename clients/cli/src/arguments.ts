import { type Command, InvalidArgumentError, Option } from "commander";
import { parseBytes } from "#words/bytes";
import type { TypedField } from "#words/field-facts";
import { UsageError } from "./failure.ts";
import { visible } from "./terminal.ts";

/**
 * Refuses arguments that a command does not take, and names the option for a name that was given without it: lists are limited to a
 * namespace by an option, while other commands take it as an argument.
 *
 * @throws UsageError.
 */
export function refuseExcess(made: Command): void {
  const taken = made.registeredArguments;
  const [excess] = made.args.slice(taken.length);
  if (excess === undefined || taken.at(-1)?.variadic) return;
  const named = made.options.find(
    ({ long, flags }) => flags.endsWith("<name>") && (long === "--namespace" || long === "--tenant"),
  );
  const hint = named
    ? `Name the ${named.name()} with ${named.long} ${visible(excess)}.`
    : "--help lists what it takes.";
  throw new UsageError(`Too many arguments for '${made.name()}': ${visible(excess)}. ${hint}`);
}

/** Parses a whole number. @throws InvalidArgumentError. */
export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}

/** Parses the largest number of items in a list. @throws InvalidArgumentError. */
export function parseLimit(text: string): number {
  const limit = parseCount(text);
  if (limit === 0) throw new InvalidArgumentError("It must be at least 1.");
  return limit;
}

/** Parses a positive number with or without decimals. @throws InvalidArgumentError. */
export function parsePerMillion(text: string): number {
  if (/^\d{1,7}(\.\d{1,6})?$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("It must be a positive number, such as 1 or 0.5.");
}

/** Parses a 64-bit number, such as a fencing token. @throws InvalidArgumentError. */
export function parseId(text: string): bigint {
  if (/^[1-9]\d{0,17}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("It must be a positive whole number.");
}

/** Parses a number of bytes, such as 65536 or 64KiB. @throws InvalidArgumentError. */
export function parseByteCount(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError("It must be a number of bytes such as 65536, 64KiB or 5GiB.");
}

/** Parses a SHA-256 fingerprint in hexadecimal, or in base64 as `--json` prints it. @throws InvalidArgumentError. */
export function parseFingerprint(text: string): Uint8Array<ArrayBuffer> {
  if (/^[\da-f]{64}$/i.test(text)) return Uint8Array.from(Buffer.from(text, "hex"));
  if (/^[\w+/-]{43}=?$/.test(text)) return Uint8Array.from(Buffer.from(text, "base64"));
  throw new InvalidArgumentError(
    "It must be 64 hexadecimal digits, as records show prints them, or base64, as --json prints it.",
  );
}

/** An option that sets a field of a message. */
export interface Field<Init> {
  /** The option's flags, such as `--max-lease <duration>`. */
  readonly flags: string;
  readonly description: string;
  /** The field's name in the proto, such as `max_lease`. */
  readonly path: string;
  /** Returns an object with the field; an empty object if the text unsets the field. @throws InvalidArgumentError. */
  readonly parse: (text: string) => Init;
}

/** The fields that options set, and the paths of all fields that they set or unset. */
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

/** Returns an option for each field of a message, named after it, which sets it. @param unset the word that unsets a field, in any case. */
export function fieldOptions<Init>(fields: readonly TypedField[], unset: string): readonly Field<Init>[] {
  return fields.map(({ name, path, label, help, kind }) => ({
    flags: `--${label.replaceAll(" ", "-")} <${kind.placeholder}>`,
    description: `${help}; "${unset}" unsets it`,
    path,
    parse(text) {
      if (text.toLowerCase() === unset) return {} as Init;
      const value = kind.parse(text);
      if (value === undefined) throw new InvalidArgumentError(kind.example);
      return { [name]: value } as Init;
    },
  }));
}
