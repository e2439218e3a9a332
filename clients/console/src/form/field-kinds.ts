import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { formatBytes } from "@onceward/words/bytes";
import { formatDurationMs } from "@onceward/words/durations";
import { parseDuration } from "../format/duration.ts";
import { parseSize } from "../format/quantity.ts";

/** How the values of a field are typed, in the forms of the command line. */
export interface FieldKind<Value = unknown> {
  /** Returns the text of a message's value. */
  format(value: Value): string;
  /** Returns a trimmed text's value for a message; undefined: it can't be read. */
  parse(text: string): Value | undefined;
  /** What to type instead of a text that can't be read. */
  readonly example: string;
}

/** A whole number of milliseconds with a unit. */
export const DURATION: FieldKind<Duration> = {
  format: (duration) => formatDurationMs(durationMs(duration)),
  parse(text) {
    const ms = parseDuration(text);
    return ms === undefined ? undefined : durationFromMs(ms);
  },
  example: "A whole number with a unit, such as 90s, 15m, 72h or 30d.",
};

/** @param max the largest value that a message can have. */
export function bytesKind(max: number, example: string): FieldKind<number> {
  return { format: formatBytes, parse: (text) => atMost(max, parseSize(text)), example };
}

/** Digits, also with separators as the console shows them. @param max as of `bytesKind`. */
export function countKind(max: number): FieldKind<number> {
  return {
    format: String,
    parse: (text) => atMost(max, /^[\d,]*\d$/.test(text) ? Number(text.replaceAll(",", "")) : undefined),
    example: "A whole number, such as 500.",
  };
}

/** As another kind, for a field of 64 bits. */
export function bigKind({ format, parse, example }: FieldKind<number>): FieldKind<bigint> {
  return {
    format: (value) => format(Number(value)),
    parse(text) {
      const value = parse(text);
      return value === undefined ? undefined : BigInt(value);
    },
    example,
  };
}

/** One of a few values, by name; a value without a name has an empty text. */
export function choiceKind(values: Readonly<Record<string, unknown>>): FieldKind {
  return {
    format: (value) => Object.keys(values).find((name) => values[name] === value) ?? "",
    parse: (text) => (Object.hasOwn(values, text) ? values[text] : undefined),
    example: `One of ${Object.keys(values).join(", ")}.`,
  };
}

/** Any text. */
export const TEXT: FieldKind<string> = { format: String, parse: (text) => text, example: "A text." };

/** Returns a text in the one form that `format` has; a text that can't be read stays as it is. */
export function canonicalText<Value>({ format, parse }: FieldKind<Value>, text: string): string {
  const value = parse(text.trim());
  return value === undefined ? text.trim() : format(value);
}

/** Returns a field's name in an update mask. @param name as messages have it, such as "keyRetention". */
export function maskName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function atMost(max: number, value: number | undefined): number | undefined {
  return value === undefined || value > max ? undefined : value;
}
