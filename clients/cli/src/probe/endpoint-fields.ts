import { UsageError } from "../failure.ts";

/** Reads a value. @throws UsageError, whose message follows the field's name. */
export type Read<Value> = (value: unknown) => Value;

const MAX_TEXT = 65_536;
const MAX_ENTRIES = 100;

/** Reads a text. @param pattern what it must match, in words for errors. */
export function text(maxLength = MAX_TEXT, pattern = /(?:)/, form = ""): Read<string> {
  return (value) => {
    if (typeof value !== "string") throw new UsageError("must be a text");
    if (value.length > maxLength) throw new UsageError(`must have at most ${maxLength} characters`);
    if (!pattern.test(value)) throw new UsageError(`must be ${form}`);
    return value;
  };
}

/** Reads an http or https URL. */
export const url: Read<string> = (value) => {
  const read = text(2048)(value);
  if (!/^https?:$/.test(URL.parse(read)?.protocol ?? ""))
    throw new UsageError("must be an http or https URL");
  return read;
};

export const flag: Read<boolean> = (value) => {
  if (typeof value !== "boolean") throw new UsageError("must be true or false");
  return value;
};

/** Reads a whole number of milliseconds. */
export function milliseconds(max: number): Read<number> {
  return (value) => {
    if (!Number.isInteger(value) || Number(value) < 0 || Number(value) > max)
      throw new UsageError(`must be a whole number from 0 to ${max}`);
    return Number(value);
  };
}

/** Reads one of several texts. */
export function oneOf<const Value extends string>(...values: readonly Value[]): Read<Value> {
  return (value) => {
    const found = values.find((one) => one === value);
    if (found === undefined) throw new UsageError(`must be ${values.join(", ")}`);
    return found;
  };
}

/** Reads a list of texts. */
export function texts(min: number, maxLength: number): Read<readonly string[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new UsageError("must be a list");
    if (value.length < min || value.length > MAX_ENTRIES)
      throw new UsageError(`must have ${min} to ${MAX_ENTRIES} entries`);
    return value.map(text(maxLength));
  };
}

/** Reads headers by name. */
export const headers: Read<Readonly<Record<string, string>>> = (value) =>
  Object.fromEntries(
    Object.entries(members(value)).map(([name, content]) => {
      if (!/^[\w!#$%&'*+.^`|~-]{1,128}$/.test(name))
        throw new UsageError(`has a name that is not a header's: ${name}`);
      return [name, text(4096)(content)];
    }),
  );

/** Reads an object of a few members. */
export function members(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError("must be an object");
  if (Object.keys(value).length > MAX_ENTRIES)
    throw new UsageError(`must have at most ${MAX_ENTRIES} members`);
  return value as Readonly<Record<string, unknown>>;
}
