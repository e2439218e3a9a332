import type { DescMessage } from "@bufbuild/protobuf";
import { type FieldKind, type TypedField, typedFields } from "@onceward/words/field-facts";
import { asTitle, formatCount } from "../format/quantity.ts";

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

/** Returns a typed text in words, such as "72h", "64KiB" or "1,000"; a text that can't be read stays as it is. */
export function valueWords({ choices, placeholder, format, parse }: FieldKind, text: string): string {
  const value = parse(text.trim());
  if (value === undefined || choices !== undefined) return text;
  return placeholder === "count" ? formatCount(Number(value)) : format(value);
}
