import type { DescMessage } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { type FieldKind, type TypedField, typedFields } from "@onceward/words/field-facts";
import { formatDurationMs } from "../format/duration.ts";
import { asTitle, formatCount, formatSize } from "../format/quantity.ts";

const KIB = 1_024;

/** Returns the fields of a message for a form: as the contract describes them, in sentences. */
export function formFields(schema: DescMessage): readonly TypedField[] {
  return typedFields(schema).map((field) => ({
    ...field,
    label: asTitle(field.label),
    help: `${asTitle(field.help)}.`,
  }));
}

/** Returns a text in the one form that `format` has; a text that can't be read stays as it is. */
export function canonicalText({ format, parse }: FieldKind, text: string): string {
  const value = parse(text.trim());
  return value === undefined ? text.trim() : format(value);
}

/** Returns a typed text in words, such as "72h", "64 KiB" or "1,000"; a text that can't be read stays as it is. */
export function valueWords({ placeholder, parse }: FieldKind, text: string): string {
  const value = parse(text.trim());
  if (value === undefined) return text;
  switch (placeholder) {
    case "duration":
      return formatDurationMs(durationMs(value as Duration));
    case "bytes":
      return bytesWords(Number(value));
    case "count":
      return formatCount(Number(value));
    default:
      return text;
  }
}

function bytesWords(bytes: number): string {
  return bytes % KIB === 0 ? formatSize(bytes).replace(/\.0+ /, " ") : `${formatCount(bytes)} B`;
}
