import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { type FieldFacts, fieldFacts, Unit } from "@onceward/client/proto";
import { formatBytes, parseBytes } from "./bytes.ts";
import { formatDurationMs, parseDurationMs } from "./durations.ts";

/** How the values of a field are typed. */
export interface FieldKind<Value = unknown> {
  /** What is typed, in few words, such as "duration" or "reclaim|hold". */
  readonly placeholder: string;
  /** Undefined: any value may be typed. */
  readonly choices?: readonly string[];
  /** Returns the text of a message's value, which `parse` reads. */
  format(value: Value): string;
  /** Returns a text's value for a message; undefined: it can't be read. */
  parse(text: string): Value | undefined;
  /** What to type instead of a text that can't be read. */
  readonly example: string;
}

/** A field of a message as people read and type it. */
export interface TypedField {
  /** The name in messages, such as "keyRetention". */
  readonly name: string;
  /** The name in update masks, such as "key_retention". */
  readonly path: string;
  /** Such as "key retention". */
  readonly label: string;
  /** What it decides, with its range and its default: "how long …; 1m to 400d; 72h unless set". "" if people do not type it. */
  readonly help: string;
  readonly kind: FieldKind;
  /** The text of the value that applies where the field is not set; "" without one. */
  readonly default: string;
  /** Returns why a text is not a value of the field: it can't be read, or is out of the range; undefined: it is one. */
  problemOf(text: string): string | undefined;
  /** What applies where the field is not set: its default, "as the key retention", "unlimited" or "none". */
  readonly unset: string;
}

/** Returns the fields of a message, in its order, as the contract describes them. */
export function typedFields({ fields }: DescMessage): readonly TypedField[] {
  return fields.map(typedField);
}

function typedField(descriptor: DescField): TypedField {
  const facts = factsOf(descriptor);
  const kind = kindOf(descriptor, facts);
  const value = kind.parse(facts.default);
  const fallback = value === undefined ? "" : kind.format(value) || facts.default;
  const from = descriptor.parent.fields.find(({ name }) => name === facts.defaultFrom);
  const applies = from ? `as the ${labelOf(from)}` : fallback;
  const help = [facts.help, rangeOf(kind, facts), applies && `${applies} unless set`];
  return {
    name: descriptor.localName,
    path: descriptor.name,
    label: labelOf(descriptor),
    help: facts.help && help.filter(Boolean).join("; "),
    kind,
    default: fallback,
    problemOf: (text) => problemOf(kind, facts, text),
    unset: applies || (kind === TEXT ? "none" : "unlimited"),
  };
}

/** Returns the facts of a field, with the range of the field that they name. */
function factsOf(field: DescField): FieldFacts {
  const facts = getOption(field, fieldFacts);
  const fields = field.parent.file.messages.flatMap((message) => message.fields);
  const same = fields.find(({ parent, name }) => `${parent.name}.${name}` === facts.sameAs);
  if (same === undefined) return facts;
  const { min, max } = getOption(same, fieldFacts);
  return { ...facts, min, max };
}

/** Returns the text of a message's field; "" where it is not set. */
export function fieldText({ name, kind }: TypedField, message: object | undefined): string {
  const value = (message as Readonly<Record<string, unknown>> | undefined)?.[name];
  return value === undefined ? "" : kind.format(value);
}

function labelOf(descriptor: DescField): string {
  return getOption(descriptor, fieldFacts).label || descriptor.name.replaceAll("_", " ");
}

/** Returns the range in words, such as "1m to 400d"; "" for a text, and without a greatest value. */
function rangeOf(kind: FieldKind, { min, max }: FieldFacts): string {
  if (kind === TEXT || max === 0n) return "";
  const words = (limit: bigint) => (kind === DURATION ? formatDurationMs(Number(limit)) : kind.format(limit));
  return `${words(min)} to ${words(max)}`;
}

function problemOf(kind: FieldKind, facts: FieldFacts, text: string): string | undefined {
  const value = kind.parse(text);
  if (value === undefined) return kind.example;
  const range = rangeOf(kind, facts);
  const number = kind === DURATION ? durationMs(value as Duration) : Number(value);
  return range !== "" && (number < facts.min || number > facts.max) ? `It must be ${range}.` : undefined;
}

function kindOf(descriptor: DescField, { unit }: FieldFacts): FieldKind {
  if (descriptor.message) return DURATION as FieldKind;
  if (descriptor.enum) {
    const values = descriptor.enum.values.filter(({ number }) => number !== 0);
    return choiceKind(values.map(({ localName, name, number }) => [dashed(localName), number, dashed(name)]));
  }
  switch (descriptor.scalar) {
    case ScalarType.STRING:
      return TEXT as FieldKind;
    case ScalarType.BOOL: {
      const isFalseUnset = descriptor.presence === FeatureSet_FieldPresence.IMPLICIT;
      return { ...FLAG, format: (value) => (isFalseUnset && value === false ? "" : FLAG.format(value)) };
    }
    case ScalarType.INT64:
      return numberKind(unit, Number.MAX_SAFE_INTEGER, BigInt);
    default:
      return numberKind(unit, 2 ** 31 - 1, Number);
  }
}

const DURATION: FieldKind<Duration> = {
  placeholder: "duration",
  format: (duration) => formatDurationMs(durationMs(duration)),
  parse(text) {
    const ms = parseDuration(text);
    return ms === undefined ? undefined : durationFromMs(ms);
  },
  example: "It must be a duration such as 90s, 15m, 72h or 30d.",
};

const TEXT: FieldKind<string> = {
  placeholder: "text",
  format: (text) => text,
  parse: (text) => text,
  example: "It must be a text.",
};

/** @param max the greatest value that a message can have. */
function numberKind(unit: Unit, max: number, toValue: (number: number) => unknown): FieldKind {
  const isBytes = unit === Unit.BYTES;
  return {
    placeholder: isBytes ? "bytes" : "count",
    format: (value) => (isBytes ? formatBytes(Number(value)) : String(value)),
    parse(text) {
      // Counts may have separators, as the console shows them.
      const count = /^\d[\d,]*$/.test(text) ? Number(text.replaceAll(",", "")) : undefined;
      const number = isBytes ? parseSize(text) : count;
      return number === undefined || number > max ? undefined : toValue(number);
    },
    example: isBytes
      ? `It must be a number of bytes such as 65536, 64KiB or 5GiB, at most ${max}.`
      : `It must be a whole number such as 500, at most ${max}.`,
  };
}

/** One of a few values, also by the name that messages have in JSON; a value without a name has an empty text. */
function choiceKind(
  values: readonly (readonly [choice: string, value: unknown, name?: string])[],
): FieldKind {
  const choices = values.map(([choice]) => choice);
  return {
    placeholder: choices.join("|"),
    choices,
    format: (value) => values.find((each) => each[1] === value)?.[0] ?? "",
    parse: (text) => values.find(([choice, , name]) => [choice, name].includes(dashed(text)))?.[1],
    example: `Allowed choices are ${choices.join(", ")}.`,
  };
}

const FLAG = choiceKind([
  ["true", true],
  ["false", false],
]);

function dashed(name: string): string {
  return name.toLowerCase().replace(/[_ ]/g, "-");
}

/** Returns the milliseconds of a typed duration such as "72h", "3 d" or "90 min"; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  return parseDurationMs(text.trim().toLowerCase().replace(/\s+/, "").replace(/min$/, "m"));
}

/** Returns the bytes of a typed size such as "65536", "64KiB" or "64 kib"; undefined for any other text. */
export function parseSize(text: string): number | undefined {
  return parseBytes(
    text
      .trim()
      .replace(/\s+/, "")
      .replace(/(\d)b$/i, "$1"),
  );
}
